import { describe, expect, test } from 'vitest'
import { passagesOf } from '../text/passages.ts'
import { parseDocument } from './parse.ts'
import { pdf } from './pdf.fixture.ts'

const parse = (name: string, content: string | Uint8Array) =>
  parseDocument(name, typeof content === 'string' ? new TextEncoder().encode(content) : content)
const failure = (name: string, content: string | Uint8Array) =>
  parse(name, content).then(
    () => 'read',
    (error: { code: string }) => error.code,
  )

describe('HTML', () => {
  test('is read by its structure, without invisible parts', async () => {
    const { title, text, blocks } = await parse(
      'a.html',
      `<!doctype html><head><title>The
        page</title><style>p { color: red }</style></head><body><nav>Menu</nav><h1>Head <b>line</b></h1><script>let x = 1</script>
        <p>First   paragraph<br>second line &amp; more</p><pre>  code
    indented</pre><ul><li>one<ul><li>inner</li></ul></li><li><p>two</p></li></ul>
        <table><tr><th>name</th><th>price</th></tr><tr><td>lamp</td><td>7</td></tr></table>tail</body>`,
    )
    expect(title).toBe('The page')
    expect(blocks.map((it) => [it.type, text.slice(it.start, it.end)])).toEqual([
      ['paragraph', 'Menu'],
      ['heading', 'Head line'],
      ['paragraph', 'First paragraph\nsecond line & more'],
      ['code', '  code\n    indented'],
      ['list', '- one\n- inner\n- two'],
      ['table', 'name | price\nlamp | 7'],
      ['paragraph', 'tail'],
    ])
  })

  test('may be nested deeply, and be cut off anywhere', async () => {
    expect((await parse('a.html', `${'<div><ul><li>'.repeat(1_000)}deep`)).text).toContain('deep')
    expect(await failure('a.html', `${'<b>'.repeat(1_000_000)}deeper than real pages`)).toBe('corrupt')
    expect((await parse('a.html', '<table><tr><td>a<td>b</table><p>end')).text).toContain('a | b\n\nend')
  })
})

describe('PDF', () => {
  test('has pages, lines and a title', async () => {
    const document = await parse('a.pdf', pdf([['First line', 'second line'], ['On page two']], { title: 'Manual' }))
    expect(document.title).toBe('Manual')
    expect(document.text).toBe('First line\nsecond line\n\nOn page two')
    const passages = passagesOf(document, { maxTokens: 16, overlapTokens: 0 })
    expect(passages.map((it) => [it.page, it.text])).toEqual([[1, 'First line\nsecond line\n\nOn page two']])
    expect(passagesOf(document).map((it) => it.page)).toEqual([1])
  })

  test('that is encrypted, broken or empty is reported as such', async () => {
    expect(await failure('a.pdf', pdf([['secret']], { encrypted: true }))).toBe('encrypted')
    expect(await failure('a.pdf', 'no pdf at all')).toBe('corrupt')
    expect(await failure('a.pdf', pdf([['text']]).subarray(0, 40))).toBe('corrupt')
    expect(await failure('a.pdf', pdf([[]]))).toBe('no_text')
  })
})

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

describe('text', () => {
  test('in UTF-8 or UTF-16, with or without a mark at its start', async () => {
    expect((await parse('a.txt', '\ufeffüber 数据')).text).toBe('über 数据')
    expect((await parse('a.txt', new Uint8Array(Buffer.from('\ufeffüber', 'utf16le')))).text).toBe('über')
  })

  test.each([
    ['GBK', 'a.md', bytesOf('b6 a9 b5 a5 d2 d1 be ad b7 a2 bb f5 a1 a3'), '订单已经发货。'],
    ['GBK with Latin letters', 'a.txt', bytesOf('4f 52 44 2d 37 20 d2 d1 b7 a2 bb f5'), 'ORD-7 已发货'],
    [
      'Latin-1',
      'a.txt',
      Buffer.from('Für Größe und Maß: 20 °C, à propos café', 'latin1'),
      'Für Größe und Maß: 20 °C, à propos café',
    ],
    ['windows-1252', 'a.csv', bytesOf('70 72 69 63 65 2c 20 80 20 39 0a 93 61 94 2c 31'), 'price, € 9\n“a”,1'],
  ])('in %s', async (_, name, bytes, expected) => {
    expect((await parse(name, new Uint8Array(bytes))).text).toBe(expected)
  })

  test.each([
    ['<meta charset="Shift_JIS">', '93 fa 96 7b'],
    ['<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">', '93 fa 96 7b'],
    ['<?xml version="1.0" encoding="EUC-JP"?>', 'c6 fc cb dc'],
    ['<meta charset=big5>', 'a4 e9 a5 bb'],
  ])('of HTML in the encoding that it declares: %s', async (declaration, hex) => {
    const page = Buffer.concat([Buffer.from(`${declaration}<p>`), bytesOf(hex), Buffer.from('</p>')])
    expect((await parse('a.html', new Uint8Array(page))).text.trim()).toBe('日本')
  })

  test('of HTML that is not in the encoding it declares is refused', async () => {
    const page = Buffer.concat([Buffer.from('<meta charset="euc-jp"><p>'), bytesOf('ff ff')])
    expect(await failure('a.html', new Uint8Array(page))).toBe('encoding_unknown')
  })

  test('rows keep their first line as the header', async () => {
    const rows = Array.from({ length: 50 }, (_, n) => `lamp ${n},${n}`).join('\n')
    const passages = passagesOf(await parse('a.csv', `name,price\n${rows}`), { maxTokens: 40 })
    expect(passages.length).toBeGreaterThan(2)
    expect(passages.every((it) => it.text.startsWith('name,price\n'))).toBe(true)
  })

  test('other encodings, other types and no text at all are refused by name', async () => {
    // Shift_JIS, KOI8-R, and bytes at random.
    expect(await failure('a.txt', bytesOf('93 fa 96 7b 8c ea 82 cc 83 65 83 4c 83 58 83 67'))).toBe('encoding_unknown')
    expect(await failure('a.txt', bytesOf('81 fe 03 ff 9d 41 90'))).toBe('encoding_unknown')
    expect(await failure('a.md', new Uint8Array([1, 0, 2, 0, 3]))).toBe('binary')
    expect(await failure('a.exe', 'text')).toBe('unsupported_type')
    expect(await failure('a.md', ' \n\n ')).toBe('no_text')
    expect(await failure('a.html', '<script>1</script>')).toBe('no_text')
  })
})
