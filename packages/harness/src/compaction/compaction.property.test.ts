// Properties of every conversation, whatever the summarising model does. The conversations resemble real ones: tools,
// parallel calls, images, steering, Chinese, huge results.
import { type Block, type CompactionReason, type Message, noUsage } from '@oxbow/core'
import { openaiChat, repairHistory } from '@oxbow/models'
import { type Reply, type ScriptedModel, scriptedModel } from '@oxbow/testing'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { notes, tooLong } from './compaction.fixture.ts'
import { compactorFor, unitsOf } from './compactor.ts'
import type { Memory } from './memory.ts'

let server: ScriptedModel
let reply: Reply
beforeAll(async () => {
  server = await scriptedModel({ scripts: { notes: () => reply } })
})
afterAll(() => server.close())

const WINDOW = 16_000
const LIMIT = WINDOW - WINDOW / 10

const words = fc.oneof(
  { weight: 5, arbitrary: fc.lorem({ maxCount: 30 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('请把报告发给王先生。', '昨天的数据是 1234 条，请核对一遍再告诉我。'.repeat(8)),
  },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 400 }).filter((it) => it.trim() !== ''),
  },
)
const text = (it: string): Block => ({ type: 'text', text: it })
const image: Block = { type: 'data', mediaType: 'image/png', data: 'AAAA' }

type Shape =
  | { kind: 'user'; text: string; image: boolean }
  | { kind: 'answer'; text: string; thinking: boolean }
  | {
      kind: 'calls'
      calls: { long: boolean; result: string; times: number; image: boolean; ok: boolean }[]
      text: string
    }

const shape: fc.Arbitrary<Shape> = fc.oneof(
  fc.record({ kind: fc.constant('user' as const), text: words, image: fc.boolean() }),
  fc.record({ kind: fc.constant('answer' as const), text: words, thinking: fc.boolean() }),
  fc.record({
    kind: fc.constant('calls' as const),
    text: words,
    calls: fc.array(
      fc.record({
        long: fc.boolean(),
        result: words,
        times: fc.constantFrom(1, 1, 20, 200),
        image: fc.boolean(),
        ok: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  }),
)

const conversation = fc
  .array(shape, { minLength: 1, maxLength: 60 })
  .map((shapes) => [...shapes.flatMap(messagesOf), userSays('last', 'And what now?')])

const userSays = (id: string, it: string): Message => ({ id, role: 'user', blocks: [text(it)] })

function messagesOf(it: Shape, n: number): Message[] {
  const id = `m${n}`
  if (it.kind === 'user') return [{ id, role: 'user', blocks: [text(it.text), ...(it.image ? [image] : [])] }]
  if (it.kind === 'answer') {
    const thinking: Block[] = it.thinking ? [{ type: 'thinking', text: 'hm', signature: 'proof' }] : []
    return [{ id, role: 'assistant', blocks: [...thinking, text(it.text)] }]
  }
  const calls = it.calls.map(
    (call, at): Block => ({
      type: 'call',
      callId: `call_${n}_${at}`,
      tool: 'read',
      arguments: JSON.stringify({ page: call.long ? call.result.repeat(call.times) : 'x' }),
    }),
  )
  const results = it.calls.map(
    (call, at): Block => ({
      type: 'result',
      callId: `call_${n}_${at}`,
      tool: 'read',
      status: call.ok ? 'success' : 'error',
      content: [{ type: 'text', text: call.result.repeat(call.times) }, ...(call.image ? [image as never] : [])],
    }),
  )
  return [
    { id, role: 'assistant', blocks: [text(it.text), ...calls] },
    { id: `${id}.results`, role: 'tool', blocks: results },
  ]
}

const summary = fc.oneof(
  { weight: 3, arbitrary: fc.constant(notes('A fact that matters.', 'Another one.')) },
  fc.constantFrom<Reply>({ text: '' }, { text: 'no JSON' }, { text: '{"add":[]}' }, { status: 400, body: {} }, tooLong),
)

const compactor = () =>
  compactorFor({ contextWindow: WINDOW, model: openaiChat({ provider: 'test', model: 'notes', baseUrl: server.url }) })(
    {
      name: 'helper',
      model: {
        id: 'test:none',
        generate: async () => ({ blocks: [], finishReason: 'stop', usage: noUsage, model: '' }),
      },
      instructions: 'You help.',
      tools: [],
      maxOutputTokens: undefined,
    },
  )

const call = { signal: new AbortController().signal, onDelta: () => {} }
const compact = (messages: readonly Message[], reason: CompactionReason, id = 'c1', before?: unknown) =>
  compactor().compact({
    conversation: { messages, contextTokens: 0, ...(before !== undefined && { compaction: before as never }) },
    reason,
    system: 'You help.',
    tools: [],
    id,
    call,
  })

const textIn = (messages: readonly Message[]): string =>
  messages.flatMap((it) => it.blocks.map((block) => (block.type === 'text' ? block.text : ''))).join('\n')

test('H7: every conversation stays paired, fits or reports why not, keeps the user’s words, and never grows', async () => {
  const seen = { references: 0, summary: 0, excerpt: 0, none: 0, full: 0 }
  await fc.assert(
    fc.asyncProperty(
      conversation,
      summary,
      fc.constantFrom<CompactionReason>('threshold', 'messages', 'overflow', 'manual'),
      async (messages, scripted, reason) => {
        reply = scripted
        const given = structuredClone(messages)
        const result = await compact(messages, reason)
        expect(messages).toEqual(given)
        seen[result.full === undefined ? result.tier : 'full'] += 1

        const after = result.messages ?? messages
        expect(repairHistory(after).repairs).toEqual([])
        if (result.full === undefined) expect(result.tokensAfter).toBeLessThanOrEqual(LIMIT)
        else expect(result.full.message).toMatch(/instructions \d+.*results \d+/)
        const grew = result.tokensAfter - result.tokensBefore
        if (reason === 'threshold' || reason === 'overflow') expect(grew).toBeLessThanOrEqual(0)
        else if (grew > 0) expect(after.length).toBeLessThan(messages.length)

        // Verbatim, or the model learns where to read it.
        const shown = textIn(after)
        const told = shown.includes('session_read {"only":"user"}')
        for (const it of messages.filter(({ role }) => role === 'user'))
          for (const block of it.blocks)
            if (block.type === 'text') expect(told || shown.includes(block.text)).toBe(true)
        expect(after.at(-1)).toEqual(messages.at(-1))

        // A second compaction right away must not make it longer.
        const state = { tokens: result.tokensAfter, messages: after.length, memory: result.memory }
        const again = await compact(after, 'threshold', 'c2', state)
        expect(again.tokensAfter).toBeLessThanOrEqual(result.tokensAfter)
        expect(repairHistory(again.messages ?? after).repairs).toEqual([])
      },
    ),
    { numRuns: 300 },
  )
  // A property that never meets a case does not test it.
  for (const [tier, times] of Object.entries(seen).filter(([it]) => it !== 'full'))
    expect([tier, times > 0]).toEqual([tier, true])
}, 120_000)

test('H7: over many compactions facts survive, sizes stay bounded, and every unit stays whole', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(conversation, { minLength: 3, maxLength: 8 }), async (parts) => {
      let messages: readonly Message[] = []
      let state: { tokens: number; messages: number; memory?: unknown } | undefined
      for (const [n, part] of parts.entries()) {
        reply = notes(`Fact ${n}.`)
        const unique = part.map(
          (it): Message => ({
            ...it,
            id: `${n}.${it.id}`,
            blocks: it.blocks.map((block) =>
              'callId' in block ? { ...block, callId: `${n}.${block.callId}` } : block,
            ),
          }),
        )
        messages = [...messages, ...unique]
        const result = await compact(messages, 'messages', `c${n}`, state)
        messages = result.messages ?? messages
        const memory = result.memory ?? state?.memory
        state = { tokens: result.tokensAfter, messages: messages.length, ...(memory !== undefined && { memory }) }
        expect(repairHistory(messages).repairs).toEqual([])
        expect(unitsOf(messages).flat()).toEqual(messages)
        if (result.tier === 'summary') expect(textIn(messages)).toContain(`Fact ${n}.`)
      }
      const { notes: kept, covered } = (state?.memory ?? { notes: [], covered: 0 }) as Memory
      for (const it of kept) expect(textIn(messages)).toContain(it.text)
      expect(new Set(kept.map((it) => it.id)).size).toBe(kept.length)
      expect(covered).toBeGreaterThanOrEqual(0)
    }),
    { numRuns: 40 },
  )
}, 120_000)
