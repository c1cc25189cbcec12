import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { place } from '../helpers.fixture.ts'

test('another program’s database is refused and left unchanged, even with a table of the same name', async () => {
  const there = place({ 'a.md': 'alpha' })
  const other = new DatabaseSync(there.index)
  other.exec("CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT); INSERT INTO documents VALUES (1, 'mine')")
  other.close()
  const before = readFileSync(there.index)
  const refused = await there
    .open()
    .add([there.documents])
    .catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'index_unusable', message: expect.stringContaining('another program') })
  expect(refused).not.toMatchObject({ message: expect.stringContaining('Delete') })
  expect(readFileSync(there.index)).toEqual(before)
})

test('an index of a newer version is refused without the advice to delete it', async () => {
  const there = place({ 'a.md': 'alpha' })
  await there.open().add([there.documents])
  const newer = new DatabaseSync(there.index)
  newer.exec('PRAGMA user_version = 99')
  newer.close()
  await expect(there.open().documents()).rejects.toMatchObject({
    code: 'index_unusable',
    message: expect.stringMatching(/newer version \(99\)\. Update/),
  })
})

test('a damaged index is reported as such by every operation', async () => {
  const there = place(
    Object.fromEntries(
      Array.from({ length: 100 }, (_, n) => [`d${n}.md`, `# T${n}\n\npelican ${'lorem '.repeat(100)}`]),
    ),
  )
  const whole = there.open()
  await whole.add([there.documents])
  await whole.close()
  const file = openSync(there.index, 'r+')
  const { size } = statSync(there.index)
  for (let at = 8_192; at < size; at += 8_192) writeSync(file, Buffer.alloc(4_096, 0x5a), 0, 4_096, at)
  closeSync(file)
  const damaged = there.open()
  const told = { code: 'index_unusable', message: expect.stringMatching(/is damaged\. Delete it/) }
  await expect(damaged.documents()).rejects.toMatchObject(told)
  await expect(damaged.add([there.documents])).rejects.toMatchObject(told)
  await expect(damaged.search('pelican')).rejects.toMatchObject(told)
})
