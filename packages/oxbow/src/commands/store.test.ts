import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { place } from '../cli.fixture.ts'

test('X13: oxbow store check reports an intact store, a damaged event and a lost file', {
  timeout: 60_000,
}, async () => {
  const here = place()
  expect((await here.run(['store', 'check'])).stderr).toContain('No store at')
  expect((await here.run(['run', '-p', 'Hello', '--session', 's'])).code).toBe(0)
  const sound = await here.run(['store', 'check'])
  expect(sound).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\S*oxbow.db: 1 sessions, \d+ events, \d+ files\nNo damage found.\n$/),
  })
  const path = join(here.directory, '.oxbow/oxbow.db')
  const db = new DatabaseSync(path)
  db.exec(`UPDATE events SET body = replace(body, 'Hello', 'Hallo')`)
  db.close()
  const damaged = await here.run(['store', 'check'])
  expect(damaged.code).toBe(1)
  expect(damaged.stdout).toMatch(/Problem: session s of default: event \d+ has a wrong checksum/)
  const asJson = await here.run(['store', 'check', '--json'])
  expect(asJson.code).toBe(1)
  expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, sessions: 1, problems: [expect.any(String)] })
  rmSync(path)
  const lost = await here.run(['store', 'check'])
  expect(lost.code).toBe(1)
  expect(lost.stdout).toMatch(/Problem: .*oxbow.db is missing, with every event that had been acknowledged/)
})
