// `node -C oxbow-source bench/compaction.ts`: what of a long conversation the model still sees when the budget is a quarter, a
// half or three quarters of its length. Marks are planted in what the user says, in answers and in results.

import { memory } from '@oxbow/backends'
import { type CompactedAgent, type Conversation, type Message, type Model, noUsage } from '@oxbow/core'
import { estimateMessageTokens } from '@oxbow/core/internal'
import { compaction } from '@oxbow/harness/compaction'

const TURNS = 60
const PLACES = ['user', 'answer', 'result'] as const
type Place = (typeof PLACES)[number]
const mark = (place: Place, turn: number): string => `${place}-mark-${turn}.`

const filler = (turn: number, words: number): string =>
  Array.from({ length: words }, (_, n) => ['the', 'report', 'of', 'line', String(turn * 31 + n)][n % 5]).join(' ')

/** One turn: a request, a call with a long result, an answer. */
function turnOf(turn: number): Message[] {
  const callId = `call_${turn}`
  const long = turn % 3 === 0 ? 900 : 200
  return [
    { id: `t${turn}`, role: 'user', blocks: [{ type: 'text', text: `${filler(turn, 30)} ${mark('user', turn)}` }] },
    {
      id: `t${turn}.1`,
      role: 'assistant',
      blocks: [{ type: 'call', callId, tool: 'read', arguments: JSON.stringify({ page: turn }) }],
    },
    {
      id: `t${turn}.1.results`,
      role: 'tool',
      blocks: [
        {
          type: 'result',
          callId,
          tool: 'read',
          status: 'success',
          content: [
            { type: 'text', text: `${filler(turn, long / 2)} ${mark('result', turn)} ${filler(turn, long / 2)}` },
          ],
        },
      ],
    },
    {
      id: `t${turn}.2`,
      role: 'assistant',
      blocks: [{ type: 'text', text: `${filler(turn, 60)} ${mark('answer', turn)}` }],
    },
  ]
}

/** Notes down every mark that it is shown: no model does better, so the figures are what compaction itself lets through. */
const attentive: Model = {
  id: 'bench:attentive',
  async generate({ messages }) {
    const marks = JSON.stringify(messages).match(/\w+-mark-\d+\./g) ?? []
    const add = [...new Set(marks)].map((text) => ({ kind: 'fact', text }))
    return {
      blocks: [{ type: 'text', text: JSON.stringify({ add }) }],
      finishReason: 'stop',
      usage: noUsage,
      model: 'attentive',
    }
  },
}

const failing: Model = {
  id: 'bench:failing',
  generate: async () => ({ blocks: [], finishReason: 'stop', usage: noUsage, model: 'failing' }),
}

const turns = Array.from({ length: TURNS }, (_, n) => turnOf(n))
const length = turns.flat().reduce((sum, it) => sum + estimateMessageTokens(it), 0)

async function survivors(
  share: number,
  model: Model,
): Promise<{ seen: Record<Place, number>; compactions: number; tokens: number }> {
  const agent: CompactedAgent = { name: 'bench', model, instructions: 'Work.', tools: [], maxOutputTokens: undefined }
  const capability = compaction({
    journal: memory().journal,
    contextWindow: Math.round((length * share) / 0.6),
    trigger: 100_000,
  })
  const compactor = capability.compaction!(agent)
  let now: Conversation = { messages: [], contextTokens: 0 }
  let compactions = 0
  for (const [n, turn] of turns.entries()) {
    for (const message of turn) {
      now = { ...now, messages: [...now.messages, message] }
      const reason = message.role === 'assistant' ? undefined : compactor.due(now)
      if (reason === undefined) continue
      const call = { signal: new AbortController().signal, onDelta: () => {} }
      const it = await compactor.compact({
        conversation: now,
        reason,
        system: 'Work.',
        tools: [],
        id: `c${n}.${message.role}`,
        call,
      })
      const kept = it.memory ?? now.compaction?.memory
      now = {
        messages: it.messages ?? now.messages,
        contextTokens: 0,
        compaction: {
          tokens: it.tokensAfter,
          messages: it.messages?.length ?? now.messages.length,
          ...(kept !== undefined && { memory: kept }),
        },
      }
      if (it.messages !== undefined) compactions += 1
    }
  }
  const text = JSON.stringify(now.messages)
  const seen = (place: Place): number => turns.filter((_, n) => text.includes(mark(place, n))).length
  const tokens = now.messages.reduce((sum, it) => sum + estimateMessageTokens(it), 0)
  return { seen: { user: seen('user'), answer: seen('answer'), result: seen('result') }, compactions, tokens }
}

console.log(`${TURNS} turns, ${TURNS * 4} messages, about ${length} tokens\n`)
console.log('| budget | summaries | compactions | tokens at the end | user | answers | results |')
console.log('|---|---|---|---|---|---|---|')
for (const share of [0.25, 0.5, 0.75])
  for (const [name, model] of [
    ['attentive', attentive],
    ['always failing', failing],
  ] as const) {
    const { seen, compactions, tokens } = await survivors(share, model)
    const part = (place: Place): string => `${Math.round((seen[place] / TURNS) * 100)} %`
    console.log(`| ${share * 100} % | ${name} | ${compactions} | ${tokens} | ${PLACES.map(part).join(' | ')} |`)
  }
