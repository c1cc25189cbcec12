import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { letterEmbedder, names, place } from '../helpers.fixture.ts'
import { pdf } from '../parse/pdf.fixture.ts'
import type { IndexReport } from './indexing.ts'

const counts = ({ added, changed, renamed, removed, unchanged }: IndexReport) => ({
  added,
  changed,
  renamed,
  removed,
  unchanged,
})
const none = { added: 0, changed: 0, renamed: 0, removed: 0, unchanged: 0 }
const many = (count: number, text: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`d${n}.md`, `# Document ${n}\n\n${text} number${n}x`]))

describe('Y11: the index follows its files', () => {
  test('only changed files are read again; deleted ones are removed; renamed ones are kept', async () => {
    const there = place({ 'a.md': '# A\n\nalpha', 'b.md': '# B\n\nbeta', 'sub/c.md': '# C\n\ngamma', 'image.png': 'x' })
    const embedder = letterEmbedder()
    const knowledge = there.open({ embedder })
    expect(counts(await knowledge.add([there.documents]))).toEqual({ ...none, added: 3 })
    expect(counts(await knowledge.refresh())).toEqual({ ...none, unchanged: 3 })

    const before = (await knowledge.search('gamma')).hits[0]!
    there.write('b.md', '# B\n\ndelta')
    rmSync(join(there.documents, 'a.md'))
    renameSync(join(there.documents, 'sub/c.md'), join(there.documents, 'sub/moved.md'))
    embedder.embedded.length = 0
    expect(counts(await knowledge.refresh())).toEqual({ ...none, changed: 1, renamed: 1, removed: 1 })
    expect(embedder.embedded).toEqual(['B\n# B\n\ndelta'])
    const after = (await knowledge.search('gamma')).hits[0]!
    expect(after.id.split('#')).toEqual(['sub/moved.md', before.id.split('#')[1]])
    expect((await knowledge.documents()).map((it) => it.name)).toEqual(['b.md', 'sub/moved.md'])
    expect((await knowledge.search('alpha beta')).channels[1]).toMatchObject({ channel: 'keyword', hits: 0 })
  })

  test('a released name can be used by another file in the same run', async () => {
    const there = place({ 'a.md': 'first text', 'b.md': 'second text' })
    const knowledge = there.open()
    await knowledge.add([there.documents])
    rmSync(join(there.documents, 'a.md'))
    renameSync(join(there.documents, 'b.md'), join(there.documents, 'a.md'))
    const report = await knowledge.refresh()
    expect(report.problems).toEqual([])
    expect((await knowledge.search('second')).hits.map((it) => it.document)).toEqual(['a.md'])
    expect(await knowledge.documents()).toHaveLength(1)
  })

  test('new passage limits split everything again', async () => {
    const there = place({ 'a.md': `# A\n\n${'A sentence of some words. '.repeat(40)}` })
    const one = there.open()
    await one.add([there.documents])
    await one.close()
    const two = there.open({ passages: { maxTokens: 40, overlapTokens: 0 } })
    expect(counts(await two.refresh())).toEqual({ ...none, changed: 1 })
    expect((await two.documents())[0]!.passages).toBeGreaterThan(3)
  })

  test('files that cannot be read are reported one by one, and the rest is indexed', async () => {
    const there = place({
      'good.md': 'a good document',
      'broken.pdf': 'no pdf',
      'locked.pdf': pdf([['secret']], { encrypted: true }),
      'binary.txt': new Uint8Array([0, 1, 2]),
      'japanese.txt': new Uint8Array([0x93, 0xfa, 0x96, 0x7b, 0x8c, 0xea]),
      'empty.md': '',
      'huge.txt': '',
    })
    truncateSync(join(there.documents, 'huge.txt'), 3_000_000)
    symlinkSync(there.documents, join(there.documents, 'ring'))
    const knowledge = there.open({ maxFileBytes: 1_000_000 })
    const { added, problems } = await knowledge.add([there.documents])
    expect(added).toBe(1)
    const codes = Object.fromEntries(problems.map((it) => [it.path.slice(there.documents.length + 1), it.code]))
    expect(codes).toEqual({
      'broken.pdf': 'corrupt',
      'locked.pdf': 'encrypted',
      'binary.txt': 'binary',
      'japanese.txt': 'encoding_unknown',
      'empty.md': 'no_text',
      'huge.txt': 'too_large',
    })
    expect(await knowledge.problems()).toHaveLength(6)
    there.write('empty.md', 'no longer empty')
    await knowledge.refresh()
    expect(await knowledge.problems()).toHaveLength(5)
  })

  test.skipIf(process.getuid?.() === 0)(
    'a folder that may not be read is reported, and its documents stay',
    async () => {
      const there = place({ 'sub/a.md': 'kept text' })
      const knowledge = there.open()
      await knowledge.add([there.documents])
      chmodSync(join(there.documents, 'sub'), 0)
      const { removed, problems } = await knowledge.refresh()
      chmodSync(join(there.documents, 'sub'), 0o755)
      expect({ removed, codes: problems.map((it) => it.code) }).toEqual({ removed: 0, codes: ['unreadable'] })
    },
  )

  test('Y11: two documents of one name are a problem that names both', async () => {
    const there = place({ 'one/guide.md': 'first guide', 'two/guide.md': 'second guide' })
    const knowledge = there.open()
    const { added, problems } = await knowledge.add([join(there.documents, 'one'), join(there.documents, 'two')])
    expect({ added, codes: problems.map((it) => it.code) }).toEqual({ added: 1, codes: ['duplicate_document'] })
    expect(problems[0]!.message).toContain(join(there.documents, 'one/guide.md'))
  })

  test('files that are not documents are listed with the reason', async () => {
    const there = place({ 'a.md': 'alpha', 'plan.docx': 'x', 'sub/run.py': 'x', LICENSE: 'x', '.git/config': 'x' })
    symlinkSync(join(there.documents, 'a.md'), join(there.documents, 'b.md'))
    const { added, problems, skipped } = await there.open().add([there.documents])
    expect({ added, problems }).toEqual({ added: 1, problems: [] })
    expect(skipped.map((it) => [it.path.slice(there.documents.length + 1), it.reason.split(';')[0]])).toEqual([
      ['LICENSE', 'type (none) is not supported'],
      ['b.md', 'is a link'],
      ['plan.docx', 'type .docx is not supported'],
      ['sub/run.py', 'type .py is not supported'],
    ])
  })

  test('a folder that was deleted disappears from search with the next run, for any path', async () => {
    const there = place({ 'one/a.md': 'alpha', 'two/b.md': 'beta', 'deep/er/c.md': 'gamma' })
    const knowledge = there.open()
    const [one, two, deeper] = ['one', 'two', 'deep/er'].map((it) => join(there.documents, it)) as [
      string,
      string,
      string,
    ]
    await knowledge.add([one, two, deeper])
    rmSync(one, { recursive: true })
    expect(counts(await knowledge.add([two]))).toEqual({ ...none, removed: 1, unchanged: 1 })
    expect((await knowledge.search('alpha')).hits).toEqual([])
    rmSync(two, { recursive: true })
    expect(counts(await knowledge.add([two]))).toEqual({ ...none, removed: 1 })
    // With its parent missing too, as on an unmounted disk, it stays until it is named explicitly.
    rmSync(join(there.documents, 'deep'), { recursive: true })
    expect(counts(await knowledge.refresh())).toEqual(none)
    expect((await knowledge.search('gamma')).hits).toHaveLength(1)
    expect(counts(await knowledge.add([deeper]))).toEqual({ ...none, removed: 1 })
    expect((await knowledge.search('gamma')).hits).toEqual([])
  })

  test('added paths can be removed; unknown paths are refused', async () => {
    const there = place({ 'a.md': 'alpha', 'b.md': 'beta' })
    const knowledge = there.open()
    const file = join(there.documents, 'a.md')
    await knowledge.add([file])
    expect(await knowledge.remove([file])).toBe(1)
    expect(counts(await knowledge.refresh())).toEqual(none)
    await expect(knowledge.add([join(there.documents, 'nothing.md')])).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a file that is not an index is refused with what to do, and is left unchanged', async () => {
    const there = place()
    writeFileSync(
      there.index,
      'something else entirely, long enough to be read as a header of a database file, but it is not one',
    )
    const knowledge = there.open()
    await expect(knowledge.documents()).rejects.toMatchObject({
      code: 'index_unusable',
      message: expect.stringMatching(/Use another file/),
    })
  })
})

describe('Y11: long indexing runs', () => {
  test('report progress and can be cancelled; the next run does the rest', async () => {
    const there = place(many(300, 'common'))
    const knowledge = there.open()
    const cancel = new AbortController()
    const seen: number[] = []
    const run = knowledge.add([there.documents], {
      signal: cancel.signal,
      onProgress: (it) => {
        if (it.phase === 'reading') seen.push(it.done)
        if (it.done === 10) cancel.abort()
      },
    })
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(seen.slice(0, 5)).toEqual([0, 1, 2, 3, 4])
    const kept = (await knowledge.documents()).length
    expect(kept).toBeGreaterThan(0)
    expect(kept).toBeLessThan(300)
    expect(counts(await knowledge.refresh())).toEqual({ ...none, added: 300 - kept, unchanged: kept })
  })

  test('do not block searches, which see each document before or after its change', async () => {
    const there = place(many(200, 'before'))
    const knowledge = there.open()
    await knowledge.add([there.documents])
    for (const [name, text] of Object.entries(many(200, 'afterwards'))) there.write(name, text)
    let running = true
    const run = knowledge.refresh().finally(() => {
      running = false
    })
    let rounds = 0
    while (running) {
      const { hits } = await knowledge.search('number7x')
      expect(hits).toHaveLength(1)
      expect(hits[0]!.text).toMatch(/before|afterwards/)
      rounds += 1
    }
    await run
    expect(rounds).toBeGreaterThan(1)
    expect((await knowledge.search('number7x')).hits[0]!.text).toContain('afterwards')
  })

  const indexer = (there: { index: string; documents: string }) =>
    spawn(
      process.execPath,
      [
        '-C',
        'oxbow-source',
        fileURLToPath(new URL('../indexer.fixture.ts', import.meta.url)),
        there.index,
        there.documents,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )

  test('leave a usable index when killed, which the next run completes', async () => {
    const there = place(many(400, 'before'))
    const knowledge = there.open()
    await knowledge.add([there.documents])
    for (const [name, text] of Object.entries(many(400, 'afterwards'))) there.write(name, text)
    const child = indexer(there)
    for await (const line of createInterface({ input: child.stdout })) if (line === '300') child.kill('SIGKILL')
    expect((await knowledge.search('number399x')).hits[0]!.text).toMatch(/before|afterwards/)
    expect((await knowledge.search('common before')).hits.length).toBeGreaterThan(0)
    const { changed, unchanged, removed } = await knowledge.refresh()
    expect({ all: changed + unchanged, removed }).toEqual({ all: 400, removed: 0 })
    expect((await knowledge.search('before', { k: 100 })).channels[1]!.hits).toBe(0)
  })

  test('are safe in two processes on the same folder', async () => {
    const there = place(many(200, 'common'))
    const children = [indexer(there), indexer(there)]
    const ended = children.map(async (it) => {
      let last = ''
      for await (const line of createInterface({ input: it.stdout })) last = line
      if (it.exitCode === null) await once(it, 'exit')
      return JSON.parse(last) as IndexReport
    })
    const reports = await Promise.all(ended)
    expect(children.map((it) => it.exitCode)).toEqual([0, 0])
    expect(reports.reduce((sum, it) => sum + it.added, 0)).toBe(200)
    expect(reports.every((it) => it.removed === 0 && it.problems.length === 0)).toBe(true)
    const knowledge = there.open()
    expect(await knowledge.documents()).toHaveLength(200)
    for (const n of [0, 99, 199]) expect(names((await knowledge.search(`number${n}x`)).hits)).toEqual([`d${n}.md`])
  })

  test('a watched folder is indexed when its files change, until watching stops', async () => {
    const there = place({ 'a.md': 'alpha' })
    const knowledge = there.open()
    await knowledge.add([there.documents])
    let reported = Promise.withResolvers<IndexReport | Error>()
    const watching = await knowledge.watch((it) => reported.resolve(it))
    await watching.ready
    there.write('sub/b.md', 'beta')
    expect(await reported.promise).toMatchObject({ added: 1, unchanged: 1 })
    expect((await knowledge.search('beta')).hits).toHaveLength(1)
    reported = Promise.withResolvers()
    rmSync(join(there.documents, 'a.md'))
    expect(await reported.promise).toMatchObject({ removed: 1 })
    await watching.stop()
  })
})
