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

test('X11: a backup that is made while the service runs is restored, and serves the same sessions', {
  timeout: 60_000,
}, async () => {
  const here = place()
  const service = here.start(['serve', '--port', '0'], { input: null })
  await service.shows(/listens on (http:\S+)/)
  const url = /listens on (http:\S+)/.exec(service.output())![1]!
  const ask = (base: string, path: string, body?: object) =>
    fetch(`${base}${path}`, {
      ...(body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    }).then((it) => it.json() as Promise<unknown>)
  await ask(url, '/api/chat', { sessionId: 's1', message: 'What is 17 * 23?' })
  const before = await ask(url, '/api/sessions/s1/messages')

  const saved = await here.run(['store', 'backup', 'backup.gz'])
  expect(saved).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^backup.gz: 1 sessions, \d+ events, \d+ files\n$/),
  })
  expect((await here.run(['store', 'backup', 'backup.gz'])).stderr).toContain('backup.gz exists')
  expect((await here.run(['store', 'restore', 'backup.gz', '--store', 'new/oxbow.db'])).stdout).toContain('1 sessions')
  const other = here.start(['serve', '--port', '0', '--store', 'new/oxbow.db'], { input: null })
  await other.shows(/listens on (http:\S+)/)
  const second = /listens on (http:\S+)/.exec(other.output())![1]!
  expect(await ask(second, '/api/sessions/s1/messages')).toEqual(before)
  expect(await ask(second, '/api/chat', { sessionId: 's1', message: 'And 2 + 2?' })).toMatchObject({
    reply: expect.stringContaining('4'),
  })
  expect((await here.run(['store', 'check', '--store', 'new/oxbow.db'])).stdout).toContain('No damage found.')

  // The restored session has grown: it is another one now.
  const again = await here.run(['store', 'migrate', '--from', 'sqlite:.oxbow/oxbow.db', '--to', 'new/oxbow.db'])
  expect(again.code).toBe(1)
  expect(again.stderr).toContain('Use an empty store')
})

test.each([
  [['store', 'restore', 'nothing.gz'], /nothing.gz cannot be read: ENOENT/],
  [['store', 'backup', 'b.gz'], /No store at/],
  [['store', 'migrate', '--from', 'nothing.db', '--to', 'new.db'], /No store at nothing.db/],
  [['store', 'migrate', '--from', 'a.db'], /--to/],
])('X11: oxbow %j says what is wrong, and leaves nothing behind', async (args, message) => {
  const here = place()
  const { code, stderr } = await here.run(args)
  expect(code).not.toBe(0)
  expect(stderr).toMatch(message)
})

test('X11: a user is erased after the command was confirmed, and the audit log keeps the act', {
  timeout: 60_000,
}, async () => {
  const here = place()
  for (const user of ['ann', 'bob']) await here.run(['run', '-p', 'What is 17 * 23?', '--user', user, '--session', 's'])
  expect((await here.run(['store', 'erase', '--yes'])).stderr).toContain('--all-users')
  const asked = await here.run(['store', 'erase', '--user', 'ann'])
  expect(asked).toMatchObject({ code: 1, stdout: expect.stringContaining('1 sessions would be erased') })
  expect((await here.run(['sessions', 'list', '--user', 'ann'])).stdout).toContain('17 * 23')
  expect((await here.run(['store', 'erase', '--user', 'ann', '--yes'])).stdout).toContain('erased 1 sessions')
  expect((await here.run(['sessions', 'list', '--user', 'ann'])).stdout).not.toContain('17 * 23')
  expect((await here.run(['sessions', 'list', '--user', 'bob'])).stdout).toContain('17 * 23')
  expect((await here.run(['store', 'check'])).stdout).toContain('No damage found.')
})
