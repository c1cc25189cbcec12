import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ask, frame, modelAt, serve, sse } from '../asking.fixture.ts'
import { thinkTagFilter } from './think-tags.ts'

function sorted(mode: 'open' | 'implied', pieces: readonly string[]) {
  const seen = { thinking: '', text: '' }
  const filter = thinkTagFilter(
    mode,
    (type, text) => {
      seen[type] += text
    },
    () => {},
  )
  for (const piece of pieces) filter.push(piece)
  filter.end(true)
  return seen
}

describe.each([
  ['open', '<think>\nhm < 3</think>\n\nanswer', 'hm < 3', 'answer'],
  ['open', '\n<think></think>answer', '', 'answer'],
  ['open', 'no tags, a < b', '', 'no tags, a < b'],
  ['open', 'the tag <think> in a sentence', '', 'the tag <think> in a sentence'],
  ['open', '<think>hm</think>the tag </think> again', 'hm', 'the tag </think> again'],
  ['open', '<think>never closed', 'never closed', ''],
  ['open', '<thi', '', '<thi'],
  ['implied', 'hm hm</think>\nanswer', 'hm hm', 'answer'],
  ['implied', '<think>hm</think>answer', 'hm', 'answer'],
] as const)('%s: %j', (mode, content, thinking, text) => {
  test('is the same however it is split', () => {
    for (let cut = 0; cut <= content.length; cut++) {
      expect(sorted(mode, [content.slice(0, cut), content.slice(cut)])).toEqual({ thinking, text })
    }
    expect(sorted(mode, [...content])).toEqual({ thinking, text })
  })
})

test('loses no text but one pair of tags and white space', () => {
  const part = fc.constantFrom('<think>', '</think>', '<', '/', 'think', '>', 'a', ' b', '\n')
  fc.assert(
    fc.property(fc.constantFrom('open' as const, 'implied' as const), fc.array(part), (mode, parts) => {
      const { thinking, text } = sorted(mode, parts)
      const plain = (value: string) => value.replaceAll(/\s/g, '')
      const untagged = parts
        .join('')
        .trimStart()
        .replace(/^<think>/, '')
        .replace('</think>', '')
      expect(plain(thinking + text)).toBe(plain(untagged))
    }),
    { examples: [['open', ['<', '</think>', 'think', '>']]] },
  )
})

test('only a closing tag: streamed text is kept as thinking', async () => {
  const frames = ['hm hm', '</think>', 'answer'].map((content) => frame({ content }))
  const server = await serve({ raw: sse(frames) })
  const { reply } = await ask(modelAt(server, { quirks: { thinkTags: 'open' } }), {}, { retyped: true })
  expect(reply.blocks).toEqual([
    { type: 'thinking', text: 'hm hm' },
    { type: 'text', text: 'answer' },
  ])
})

test('`implied` without any tag: streamed thinking is kept as the answer', async () => {
  const server = await serve({ raw: sse([frame({ content: 'answer' }), frame({}, 'stop')]) })
  const { reply } = await ask(modelAt(server, { quirks: { thinkTags: 'implied' } }), {}, { retyped: true })
  expect(reply.blocks).toEqual([{ type: 'text', text: 'answer' }])
})
