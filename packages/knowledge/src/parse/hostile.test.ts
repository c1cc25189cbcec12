import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { names, place } from '../helpers.fixture.ts'
import { parseHtml } from './html.ts'
import { parseMarkdown } from './markdown.ts'
import { pdf } from './pdf.fixture.ts'

/** Takes the parser about twenty seconds. */
const slow = () => '# a\nb\n'.repeat(1_700_000)
const good = '# Good\n\nThis one says pelican.\n'

describe('Y11: one hostile document does not hold up the rest', () => {
  test.each([
    ['numbered lists in a line', '1. '.repeat(20_000)],
    ['lists and quotes in a line', '1) > '.repeat(20_000)],
    ['lists in lists, line by line', Array.from({ length: 400 }, (_, n) => `${' '.repeat(2 * n)}- a`).join('\n')],
  ])('Markdown: %s', (_, text) => {
    const began = performance.now()
    expect(parseMarkdown(`${text}x\n`).blocks.length).toBeGreaterThan(0)
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test.each([
    ['spaces in a pre', `<pre>${' '.repeat(250_000)}x</pre>`],
    ['spaces in a list', `<ul><li><pre>${' '.repeat(250_000)}x</pre></li></ul>`],
    ['spaces in a table', `<table><tr><td><pre>a${' '.repeat(250_000)}x</pre></td></tr></table>`],
    ['paragraphs in a list', `<ul><li>x${'<p>a'.repeat(100_000)}</ul>`],
  ])('HTML: %s', (_, html) => {
    const began = performance.now()
    expect(parseHtml(html).text).toMatch(/[ax]$/)
    expect(performance.now() - began).toBeLessThan(2_000)
  })

  test('a document that takes too long to parse is skipped, and the rest is indexed', async () => {
    const there = place({ 'a.md': slow(), 'good.md': good })
    const knowledge = there.open({ parseTimeoutMs: 1_500 })
    const { added, problems } = await knowledge.add([there.documents])
    expect({ added, codes: problems.map((it) => it.code) }).toEqual({ added: 1, codes: ['too_complex'] })
    expect(names((await knowledge.search('pelican')).hits)).toEqual(['good.md'])
  })

  test('cancelling stops in the middle of a document', async () => {
    const there = place({ 'a.md': good, 'b.md': slow() })
    const knowledge = there.open()
    const cancel = new AbortController()
    let aborted = 0
    const run = knowledge.add([there.documents], {
      signal: cancel.signal,
      onProgress: (it) => {
        if (it.done !== 1) return
        aborted = performance.now()
        cancel.abort()
      },
    })
    await expect(run).rejects.toMatchObject({ code: 'cancelled' })
    expect(performance.now() - aborted).toBeLessThan(5_000)
    expect((await knowledge.documents()).map((it) => it.name)).toEqual(['a.md'])
  })

  test('an unexpected parser failure is reported for its file', async () => {
    const there = place({ 'deep.html': `<table>${'<tr><td><p>'.repeat(4_000)}x`, 'good.md': good })
    const { added, problems } = await there.open().add([there.documents])
    expect({ added, codes: problems.map((it) => it.code) }).toEqual({ added: 1, codes: ['corrupt'] })
  })

  test('a small PDF that expands to gigabytes is skipped before it fills the memory', async () => {
    const line = Buffer.from(`(${'a'.repeat(31)}) Tj 0 -12 Td\n`)
    const deflate = (): Buffer =>
      deflateSync(Buffer.concat([Buffer.from('BT /F1 12 Tf\n'), Buffer.alloc(150_000_000, line)]))
    const there = place({ 'bomb.pdf': pdf([[]], { deflate }), 'good.md': good })
    const { added, problems } = await there.open().add([there.documents])
    expect({ added, codes: problems.map((it) => it.code) }).toEqual({ added: 1, codes: ['too_complex'] })
  })
})

describe('Y11: files that change while they are indexed', () => {
  const many = () =>
    Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`f${10 + n}.md`, `# T${n}\n\nwords ${n}`]))

  test('a file replaced by a link or a pipe is not read', async () => {
    const there = place(many())
    writeFileSync(join(there.directory, 'outside.md'), 'platypus')
    const knowledge = there.open()
    const [link, pipe] = ['f69.md', 'f68.md'].map((it) => join(there.documents, it)) as [string, string]
    const { added, problems } = await knowledge.add([there.documents], {
      onProgress: ({ done }) => {
        if (done !== 0) return
        for (const it of [link, pipe]) rmSync(it)
        symlinkSync(join(there.directory, 'outside.md'), link)
        execFileSync('mkfifo', [pipe])
      },
    })
    expect({ added, problems: problems.map((it) => [it.path, it.code]) }).toEqual({
      added: 58,
      problems: [
        [pipe, 'unreadable'],
        [link, 'unreadable'],
      ],
    })
    expect((await knowledge.search('platypus')).hits).toEqual([])
  })

  test('files below a folder that became a link are not read', async () => {
    const there = place({ ...many(), 'sub/a.md': 'inside' })
    const outside = join(there.directory, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'a.md'), 'platypus')
    const knowledge = there.open()
    const { problems } = await knowledge.add([there.documents], {
      onProgress: ({ done }) => {
        if (done !== 0) return
        renameSync(join(there.documents, 'sub'), join(there.directory, 'before'))
        symlinkSync(outside, join(there.documents, 'sub'))
      },
    })
    expect(problems.map((it) => it.code)).toEqual(['unreadable'])
    expect((await knowledge.search('platypus')).hits).toEqual([])
  })

  test('a document whose file became a link is gone; a root may be a link', async () => {
    const there = place({ 'a.md': 'alpha', 'b.md': 'beta' })
    const root = join(there.directory, 'link')
    symlinkSync(there.documents, root)
    const knowledge = there.open()
    expect(await knowledge.add([root])).toMatchObject({ added: 2, problems: [] })
    rmSync(join(there.documents, 'a.md'))
    symlinkSync(join(there.documents, 'b.md'), join(there.documents, 'a.md'))
    expect(await knowledge.refresh()).toMatchObject({ removed: 1, unchanged: 1, problems: [] })
  })
})

describe('Y11: names that a citation cannot hold', () => {
  test('brackets and line breaks in the names of files are encoded', async () => {
    const there = place({ 'a]b[c.md': 'walrus', 'two\nlines.md': 'dugong' })
    const knowledge = there.open()
    await knowledge.add([there.documents])
    expect((await knowledge.documents()).map((it) => it.name)).toEqual(['a%5Db%5Bc.md', 'two%0Alines.md'])
  })

  test('an invalid number of hits is refused', async () => {
    const knowledge = place().open()
    for (const k of [0, -1, 1.5, Number.NaN, 1e9])
      await expect(knowledge.search('x', { k })).rejects.toMatchObject({ code: 'options_invalid' })
  })
})
