import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sseReader } from './sse.ts'

const events = (...pieces: (string | Uint8Array)[]): string[] => {
  const seen: string[] = []
  const reader = sseReader((data) => seen.push(data))
  for (const piece of pieces) reader.push(typeof piece === 'string' ? Buffer.from(piece) : piece)
  reader.end()
  return seen
}

test.each([
  ['LF', '\n'],
  ['CR LF', '\r\n'],
  ['a lone CR', '\r'],
])('lines end with %s', (_, end) => {
  expect(events(['data: one', '', 'data:two', '', ''].join(end))).toEqual(['one', 'two'])
})

test('several data lines of one event are joined by a line feed', () => {
  expect(events('data: a\ndata\ndata: b\n\n')).toEqual(['a\n\nb'])
})

test('comments, other fields and events without data yield nothing', () => {
  expect(events(': OPENROUTER PROCESSING\n\nevent: ping\nid: 7\nretry: 5\nwhat: x\n\ndata: a\n\n')).toEqual(['a'])
})

test('a byte order mark at the start is skipped', () => {
  expect(events('\uFEFFdata: a\n\n')).toEqual(['a'])
})

test('U+2028, U+2029 and U+0085 are not line ends', () => {
  const text = 'a\u2028b\u2029c\u0085d'
  expect(events(`data: ${text}\n\n`)).toEqual([text])
})

test('an event left open at the end of the stream is emitted', () => {
  expect(events('data: a\n\ndata: [DONE]')).toEqual(['a', '[DONE]'])
  expect(events('data: a\r')).toEqual(['a'])
})

test('the events are the same wherever the bytes are split, even inside a character', () => {
  const body = Buffer.from(
    '\uFEFF: hi\r\ndata: naïve 天气 🌤\r\n\r\ndata: a\r\ndata: \u2028b\r\n\r\nevent: x\ndata: last\n\n',
  )
  const whole = events(body)
  expect(whole).toEqual(['naïve 天气 🌤', 'a\n\u2028b', 'last'])
  for (let cut = 0; cut <= body.length; cut++) {
    expect(events(body.subarray(0, cut), body.subarray(cut))).toEqual(whole)
  }
  expect(events(...[...body].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
})

test('any text survives any splitting', () => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\r\n]|[\uD800-\uDFFF]/g, '_'))
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), fc.infiniteStream(fc.nat(9)), (lines, sizes) => {
      const body = Buffer.from(lines.map((text) => `data: ${text}\n\n`).join(''))
      const pieces: Uint8Array[] = []
      for (let at = 0; at < body.length; at += pieces.at(-1)!.length) {
        pieces.push(body.subarray(at, at + 1 + sizes.next().value))
      }
      expect(events(...pieces)).toEqual(lines)
    }),
  )
})
