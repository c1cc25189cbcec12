// When to compact a conversation and how far: cheap ways first, then a summary, then less and less of the rest.

import type {
  Compaction,
  CompactionReason,
  CompactionRequest,
  CompactorFor,
  Conversation,
  Failure,
  InputBlock,
  Message,
  Usage,
} from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { contextTokens, type Ruler, rulerFor } from './measure.ts'
import { emptyMemory, headMessage, isInput, type Memory, rememberNotes, saidInMessages, sayable } from './memory.ts'
import { type CompactionOptions, type CompactionSettings, fixedTokens, type Sizes, settingsFor } from './options.ts'
import { shorten } from './shorten.ts'
import { type Summary, summarise } from './summarise.ts'

/** Characters kept of an old result once it is a reference. */
const REFERENCE_CHARS = 200
/** How far below the budget a compaction aims, so that the next one is not due immediately. */
const AIM = 0.7

export const compactorFor =
  (options: CompactionOptions): CompactorFor =>
  (agent) => {
    const settings = settingsFor(options, agent)
    const fixed = fixedTokens(agent.instructions, agent.tools)
    return {
      due: (conversation) => due(settings, conversation, fixed),
      compact: (request) => compact(settings, request),
    }
  }

function due(
  { trigger, keep, sizes, window }: CompactionSettings,
  conversation: Conversation,
  fixed: number,
): CompactionReason | undefined {
  const { messages, compaction } = conversation
  const tokens = contextTokens(conversation, fixed, window())
  // A conversation that could not be shortened is retried only when it has grown clearly.
  if (tokens >= sizes().budget && tokens >= (compaction?.tokens ?? 0) * 1.1) return 'threshold'
  const fresh = messages.length - (compaction?.messages ?? 0)
  return messages.length >= trigger && fresh >= trigger - keep - 1 ? 'messages' : undefined
}

/** A conversation split into the earlier head message and the rest. */
interface Given {
  readonly messages: readonly Message[]
  readonly head: Message | undefined
  readonly memory: Memory
  readonly rest: readonly Message[]
}

/** One way to cut: the removed part, the user's messages in it, and the kept part. */
interface Cut {
  readonly gone: readonly Message[]
  readonly tail: readonly Message[]
  readonly said: readonly InputBlock[]
  readonly memory: Memory
}

type Draft = Pick<Compaction, 'tier'> & { readonly messages: readonly Message[]; readonly memory?: Memory }

async function compact(settings: CompactionSettings, request: CompactionRequest): Promise<Compaction> {
  const { conversation, reason, id, call, generate } = request
  const given = takenApart(conversation)
  const ruler = rulerFor(request, settings.window())
  const before = ruler.total(given.messages)
  const aims = aimsFor(settings.sizes(), reason, before)
  const reported = (draft: Draft, more: Pick<Compaction, 'usage' | 'failure'> = {}): Compaction =>
    report({ draft, given, before, limit: aims.limit, ruler, more })
  const unchanged: Draft = { tier: 'none', messages: given.messages }

  const light: Draft = { tier: 'references', messages: withReferences(given, settings.keep) }
  const saved = before - ruler.total(light.messages)
  const counts = reason === 'messages' || reason === 'manual'
  if (!counts && saved > 0 && before - saved <= aims.goal) return reported(light)

  const cut = chosenCut(given, settings, aims, ruler)
  const place = (memory: Memory): Message[] =>
    cut.gone.length === 0 && given.head === undefined ? [...cut.tail] : [headMessage(id, memory, cut.said), ...cut.tail]
  if (cut.gone.length === 0) {
    const messages = place(cut.memory)
    const kept = given.head === undefined ? {} : { memory: cut.memory }
    return reported(ruler.total(messages) < before ? { tier: 'references', messages, ...kept } : unchanged)
  }
  const worth = (messages: readonly Message[]): boolean =>
    ruler.total(messages) < before || (counts && messages.length < given.messages.length)

  const summary = await summaryOf(settings, cut, { call, generate }, aims.summary)
  const spent = summary.usage === undefined ? {} : { usage: summary.usage }
  if ('additions' in summary) {
    const memory = rememberNotes(cut.memory, summary.additions, aims.summary)
    const messages = place(memory)
    return reported(worth(messages) ? { tier: 'summary', messages, memory } : unchanged, spent)
  }
  const failed = { ...spent, ...(summary.failure && { failure: summary.failure }) }
  if (saved > 0 && before - saved <= aims.limit) return reported(light, failed)
  if (before <= aims.limit) return reported(unchanged, failed)
  const messages = place(cut.memory)
  return reported(worth(messages) ? { tier: 'excerpt', messages, memory: cut.memory } : unchanged, failed)
}

function takenApart({ messages, compaction }: Conversation): Given {
  const memory = compaction?.memory as Memory | undefined
  if (memory === undefined) return { messages, head: undefined, memory: emptyMemory, rest: messages }
  return { messages, head: messages[0], memory, rest: messages.slice(1) }
}

interface Aims extends Sizes {
  /** The target size after compaction. */
  readonly goal: number
}

/** An overflow proves the estimates wrong: then the request must become clearly smaller. */
function aimsFor(sizes: Sizes, reason: CompactionReason, before: number): Aims {
  const goal = sizes.budget * AIM
  if (reason !== 'overflow') return { ...sizes, goal }
  return { ...sizes, goal: Math.min(goal, before * 0.5), limit: Math.min(sizes.limit, before * 0.9) }
}

/** Each answer with its calls and their results, and each other message, is one unit: kept or removed as a whole. */
export function unitsOf(messages: readonly Message[]): Message[][] {
  const units: Message[][] = []
  for (const message of messages) {
    const last = units.at(-1)
    if (message.role === 'tool' && last !== undefined) last.push(message)
    else units.push([message])
  }
  return units
}

/** How many trailing units hold at most `keep` messages; the last one always counts. */
function kept(units: readonly (readonly Message[])[], keep: number): number {
  let messages = 0
  const older = units.findLastIndex((unit) => {
    messages += unit.length
    return messages > keep
  })
  return Math.max(1, units.length - 1 - older)
}

function withReferences({ head, rest }: Given, keep: number): Message[] {
  const units = unitsOf(rest)
  const old = units.length - kept(units, keep)
  const short = units.flatMap((unit, n) => (n < old ? unit.map((it) => shorten(it, REFERENCE_CHARS)) : unit))
  return head === undefined ? short : [head, ...short]
}

/** Ways to cut, each keeping less: fewer messages, then shorter results except the last, then those too. */
const CUTS = (keep: number, user: number) => [
  { keep, user },
  { keep, user, tail: REFERENCE_CHARS },
  { keep: Math.ceil(keep / 3), user, tail: REFERENCE_CHARS },
  { keep: 1, user, last: 4_000 },
  { keep: 1, user: user / 4, last: 600 },
]

/** The first cut that reaches the goal; else the budget, else the limit, else the shortest. */
function chosenCut(given: Given, { keep }: CompactionSettings, aims: Aims, ruler: Ruler): Cut {
  const cuts = CUTS(keep, aims.user).map((it) => cutAs(given, it))
  const size = (cut: Cut): number =>
    ruler.total([headMessage('', cut.memory, cut.said), ...cut.tail]) + (cut.gone.length > 0 ? aims.summary : 0)
  const sized = cuts.map((cut) => ({ cut, tokens: size(cut) }))
  for (const most of [aims.goal, Math.min(aims.budget, aims.limit), aims.limit]) {
    const found = sized.find(({ tokens }) => tokens <= most || most === Infinity)
    if (found !== undefined) return found.cut
  }
  return cuts.at(-1)!
}

function cutAs(
  { head, memory, rest }: Given,
  way: { readonly keep: number; readonly user: number; readonly tail?: number; readonly last?: number },
): Cut {
  const units = unitsOf(rest)
  const first = units.length - kept(units, way.keep)
  const gone = units.slice(0, first).flat()
  const tail = units.slice(first).flatMap((unit, n, all) => {
    const chars = n === all.length - 1 ? way.last : way.tail
    return chars === undefined ? unit : unit.map((it) => shorten(it, chars))
  })
  const own = gone
    .filter((it) => it.role === 'user' && it.origin === undefined)
    .flatMap((it) => it.blocks.filter(isInput))
  const { said, lost } = sayable([...(head === undefined ? [] : saidInMessages(head)), ...own], way.user)
  const covered = memory.covered + gone.length
  return { gone, tail, said, memory: { ...memory, covered, lost: { ...memory.lost, said: memory.lost.said + lost } } }
}

async function summaryOf(
  { model }: CompactionSettings,
  { memory, gone }: Cut,
  { call, generate }: Pick<CompactionRequest, 'call' | 'generate'>,
  tokens: number,
): Promise<Summary | { readonly usage?: Usage; readonly failure?: Failure }> {
  if (call !== undefined) return summarise(model, memory, gone, { tokens, call, generate })
  // A dry run calls no model: it assumes a summary of the usual length.
  return { additions: { add: [{ kind: 'fact', text: 'x'.repeat(Math.max(1, (tokens - 10) * 4)) }], done: [] } }
}

function report(it: {
  readonly draft: Draft
  readonly given: Given
  readonly before: number
  readonly limit: number
  readonly ruler: Ruler
  readonly more: Pick<Compaction, 'usage' | 'failure'>
}): Compaction {
  const { draft, given, before, limit, ruler, more } = it
  const { tier, messages, memory } = draft
  const tokensAfter = ruler.total(messages)
  const parts = ruler.parts(messages, memory !== undefined || given.head !== undefined ? messages[0] : undefined)
  return {
    tier,
    tokensBefore: before,
    tokensAfter,
    parts,
    ...(tier !== 'none' && { messages: [...messages] }),
    ...defined({ memory }),
    ...more,
    ...(tokensAfter > limit && { full: tooFull(tokensAfter, limit, parts) }),
  }
}

const tooFull = (tokens: number, limit: number, parts: Record<string, number>): Failure => ({
  code: 'context_full',
  message:
    `The conversation takes about ${tokens} tokens even after compaction, but only ${Math.floor(limit)} fit. Breakdown: ` +
    `${Object.entries(parts)
      .map(([part, it]) => `${part} ${it}`)
      .join(', ')}. Start a new session, or use a model with a larger window.`,
})
