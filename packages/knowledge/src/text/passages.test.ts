import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseHtml } from '../parse/html.ts'
import { parseMarkdown } from '../parse/markdown.ts'
import { parseRows, parseText } from '../parse/text.ts'
import { type Passage, passagesOf } from './passages.ts'
import { estimatePassageTokens } from './tokens.ts'

const sentences = (count: number, word = 'word'): string =>
  Array.from({ length: count }, (_, n) => `This is ${word} sentence number ${n}.`).join(' ')

const word = fc.constantFrom(
  'alpha',
  'beta',
  'gamma',
  '数据库',
  '检索',
  'x'.repeat(90),
  'e.g.',
  '`code`',
  '😀',
  '|',
  '[a](b)',
)
const line = fc.array(word, { minLength: 1, maxLength: 25 }).map((it) => it.join(' '))
const block = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 6 }), line).map(([depth, text]) => `${'#'.repeat(depth)} ${text}`),
  line,
  fc.array(line, { minLength: 1, maxLength: 8 }).map((it) => it.map((text) => `- ${text}`).join('\n')),
  fc.array(line, { minLength: 1, maxLength: 8 }).map((it) => `\`\`\`\n${it.join('\n')}\n\`\`\``),
  fc
    .array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 30 })
    .map((rows) => `| name | amount |\n|---|---|\n${rows.map((it) => `| ${it.join(' | ')} |`).join('\n')}`),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('---', '> quoted', '<div>html</div>', '    indented', '[x]: http://example.com'),
)
const markdown = fc.array(block, { maxLength: 12 }).map((it) => it.join('\n\n'))
const options = fc
  .integer({ min: 16, max: 120 })
  .chain((maxTokens) =>
    fc.record({ maxTokens: fc.constant(maxTokens), overlapTokens: fc.nat(Math.floor(maxTokens / 2)) }),
  )

const parsers = { markdown: parseMarkdown, text: parseText, rows: parseRows, html: parseHtml }

describe.each(Object.entries(parsers))('passages of %s', (_, parse) => {
  test('every character is in some passage, none is over the limit, and offsets are those of the text', () => {
    fc.assert(
      fc.property(markdown, options, (source, { maxTokens, overlapTokens }) => {
        const document = parse(source)
        const passages = passagesOf(document, { maxTokens, overlapTokens })
        const seen = new Uint8Array(document.text.length)
        for (const { text, start, end } of passages) {
          expect(estimatePassageTokens(text)).toBeLessThanOrEqual(maxTokens)
          expect(text.endsWith(document.text.slice(start, end))).toBe(true)
          seen.fill(1, start, end)
        }
        const lost = Array.from({ length: seen.length }, (_, n) => (seen[n] === 1 ? '' : document.text[n])).join('')
        expect(lost.trim()).toBe('')
        expect(new Set(passages.map((it) => it.key)).size).toBe(passages.length)
        expect(passages.every((it, n) => n === 0 || it.start >= passages[n - 1]!.start)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })
})

describe('passages of Markdown', () => {
  const keys = (text: string) => passagesOf(parseMarkdown(text)).map((it) => it.key)

  test('Y11: an edit elsewhere in the document does not change an id, an edit of the passage does', () => {
    fc.assert(
      fc.property(line, line, line, (a, b, c) => {
        const text = (first: string) => `# One\n\nfirst ${first}\n\n# Two\n\nsecond ${b}\n\n# Three\n\nthird ${c}`
        const [before, after] = [keys(text(a)), keys(text(`${a} edited`))]
        expect(after.slice(-2)).toEqual(before.slice(-2))
        expect(after[0]).not.toBe(before[0])
      }),
    )
  })

  test('the same text twice has two ids', () => {
    const [one, two] = keys('# A\n\nsame\n\n# A\n\nsame') as [string, string]
    expect(two).toBe(`${one}-2`)
  })

  test('a passage knows the headings above it, without their marks', () => {
    const passages = passagesOf(
      parseMarkdown('intro\n\n# The *guide*\n\n## Set `up`\n\ntext\n\n### Deep\n\nmore\n\n## Next\n\nend'),
    )
    expect(passages.map((it) => [it.headings.join(' › '), it.text])).toEqual([
      ['', 'intro'],
      ['The guide › Set up', '# The *guide*\n\n## Set `up`\n\ntext'],
      ['The guide › Set up › Deep', '### Deep\n\nmore'],
      ['The guide › Next', '## Next\n\nend'],
    ])
  })

  test('a heading in fenced code does not count', () => {
    expect(passagesOf(parseMarkdown('# A\n\n```sh\n# comment\n```\n\ntext'))).toHaveLength(1)
  })

  test('a large document is parsed in parts, with the same result', () => {
    const section = (n: number) => `## Part ${n}\n\n${sentences(30, `p${n}`)}\n\n~~~md\n# no heading\n~~~\n\n- a\n- b\n`
    const large = Array.from({ length: 150 }, (_, n) => section(n)).join('\n')
    expect(large.length).toBeGreaterThan(150_000)
    const passages = passagesOf(parseMarkdown(large))
    const apart = Array.from({ length: 150 }, (_, n) => passagesOf(parseMarkdown(section(n)))).flat()
    expect(passages.map((it) => it.text)).toEqual(apart.map((it) => it.text))
    expect(passages.every((it) => large.slice(it.start, it.end) === it.text)).toBe(true)
  })

  test.each([
    ['a paragraph of 400,000 lines', 'line\n'.repeat(400_000)],
    ['a list of 100,000 items', '- item\n'.repeat(100_000)],
    ['100,000 quotes in each other', '>'.repeat(100_000)],
  ])('%s does not hold up the rest', (_, text) => {
    const startedAt = performance.now()
    expect(passagesOf(parseMarkdown(text)).length).toBeGreaterThan(0)
    // Some tens of milliseconds here; the parser alone needs 20 to 60 seconds.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test('the title is that of the front matter, else the first heading', () => {
    expect(parseMarkdown('---\ntags: x\ntitle: "My guide"\n---\n\n# Other').title).toBe('My guide')
    expect(parseMarkdown('text\n\n## First').title).toBe('First')
    expect(parseMarkdown('text').title).toBeUndefined()
  })

  test('a split table repeats its header and is split between rows', () => {
    const rows = Array.from({ length: 60 }, (_, n) => `| item ${n} | ${n * 7} |`)
    const header = '| name | amount |\n|------|--------|\n'
    const passages = passagesOf(parseMarkdown(`# Prices\n\n${header}${rows.join('\n')}\n`), { maxTokens: 80 })
    expect(passages.length).toBeGreaterThan(3)
    for (const { text, headings } of passages) {
      expect(text).toContain(header.trim())
      expect(headings).toEqual(['Prices'])
      expect(
        text
          .split('\n')
          .filter((it) => it.startsWith('| item'))
          .every((it) => rows.includes(it)),
      ).toBe(true)
    }
    expect(passages.flatMap((it) => it.text.match(/item \d+/g))).toEqual(rows.map((_, n) => `item ${n}`))
  })

  test('a split paragraph is split between sentences and overlaps itself; whole blocks do not overlap', () => {
    const long = passagesOf(parseMarkdown(sentences(40)), { maxTokens: 60, overlapTokens: 20 })
    expect(long.length).toBeGreaterThan(2)
    for (const [n, { text, start }] of long.entries()) {
      expect(text).toMatch(/^This.*\.$/)
      if (n > 0) expect(start).toBeLessThan(long[n - 1]!.end)
    }
    const paragraphs = Array.from({ length: 10 }, (_, n) => sentences(3, `p${n}`)).join('\n\n')
    const whole = passagesOf(parseMarkdown(paragraphs), { maxTokens: 60, overlapTokens: 20 })
    expect(whole.every((it, n) => n === 0 || it.start >= whole[n - 1]!.end)).toBe(true)
  })

  test('a list is split between its items', () => {
    const items = Array.from({ length: 30 }, (_, n) => `- item ${n} with some words\n  on two lines`)
    const passages = passagesOf(parseMarkdown(items.join('\n')), { maxTokens: 60, overlapTokens: 0 })
    expect(passages.length).toBeGreaterThan(3)
    expect(passages.every((it) => /^- item[\s\S]*lines$/.test(it.text))).toBe(true)
  })

  test('a heading is not separated from a split block that follows it', () => {
    const passages = passagesOf(parseMarkdown(`# A heading of some length\n\n${sentences(40)}`), { maxTokens: 60 })
    expect(passages[0]!.text).toContain('sentence number 0')
  })

  test('Chinese is split between sentences', () => {
    const text = Array.from({ length: 40 }, (_, n) => `这是第${n}句话，用来检查切分。`).join('')
    const passages = passagesOf(parseMarkdown(text), { maxTokens: 50, overlapTokens: 0 })
    expect(passages.length).toBeGreaterThan(5)
    expect(passages.every((it: Passage) => it.text.startsWith('这是') && it.text.endsWith('。'))).toBe(true)
  })
})
