// A knowledge base as a capability: a tool that finds passages, and a check of the answer's citations.
import { type Capability, OxbowError, slot, slotValue, type Tool, tool } from '@oxbow/core'
import { bounded, checkFields, count, object } from '@oxbow/core/internal'
import type { Hit, SearchResult } from '@oxbow/knowledge'
import { citationsReviewer } from './citations.ts'
import { visibleText } from './visible.ts'

/** Implemented by the result of `openKnowledge` of `@oxbow/knowledge`. */
export interface Searchable {
  search(question: string, options: { readonly k: number; readonly signal: AbortSignal }): Promise<SearchResult>
}

export interface KnowledgeOptions {
  readonly knowledge: Searchable
  /** The maximum number of passages per search. Default 5. */
  readonly passages?: number
}

/** How many of the last retrieved passages may be cited; beyond that a session forgets the oldest. */
const MOST_REMEMBERED = 1_000

/** The ids of the passages that this session has retrieved, newest last. */
const retrieved = slot({
  name: 'retrieved-passages',
  initial: [] as readonly string[],
  reduce: (known, found: readonly string[]) =>
    [...known.filter((it) => !found.includes(it)), ...found].slice(-MOST_REMEMBERED),
  // A parent may cite what its sub-agents retrieved.
  handsUp: true,
})

/**
 * Gives an agent the tool `retrieve`, and checks the citations in its answers. The model learns of an id that this
 * session has not retrieved, and may answer once more; a citation that stays wrong is stored as `reply.reviewed` and
 * shown to readers.
 *
 * @throws OxbowError `invalid_option`, naming the option
 * @example
 * const base = openKnowledge({ path: '.oxbow/knowledge.db' })
 * await base.add(['docs'])
 * const helper = agent({ name: 'helper', model, instructions: 'Help.', capabilities: [knowledge({ knowledge: base })]
 * })
 */
export function knowledge(options: KnowledgeOptions): Capability {
  checkFields(options, { knowledge: object, passages: count }, invalid)
  const { knowledge: base, passages = 5 } = options
  if (typeof base?.search !== 'function')
    throw invalid("knowledge must be a knowledge base, for example openKnowledge({ path: '.oxbow/knowledge.db' })")
  return {
    name: 'knowledge',
    tools: [retrieveTool(base, passages)],
    prompt: [{ title: 'Citations', text: RULE }],
    review: citationsReviewer((slots) => slotValue(slots, retrieved)),
  }
}

const invalid = (what: string) => new OxbowError('invalid_option', `knowledge(): ${what}`)

const RULE =
  'After each statement from a retrieved passage, cite the passage’s id exactly, in brackets, for example ' +
  '[setup.md#1a2b3c4d5e6f]. Never cite an id that was not retrieved.'

function retrieveTool(base: Searchable, k: number): Tool {
  return tool({
    name: 'retrieve',
    description:
      'Searches the knowledge base and returns passages, each with an id in brackets. Cite the ids of the passages that ' +
      'you use, exactly as they are written.',
    effects: ['read'],
    shortResults: true,
    input: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What to look for.', minLength: 1, maxLength: 500 } },
      required: ['query'],
      additionalProperties: false,
    },
    async run({ query }, { signal, state }) {
      const { hits, channels } = await base.search(String(query), { k, signal })
      const answered = inWords(channels)
      if (hits.length === 0) return `Nothing in the knowledge base matches. (${answered})`
      state.change(
        retrieved,
        hits.map((it) => it.id),
      )
      return `${bounded('passages', hits.map(passageText).join('\n\n'))}\n(${answered})`
    },
  })
}

function passageText({ id, title, headings, page, text }: Hit): string {
  // The first passage below a heading starts with the heading.
  const above = /^#{1,6} /.test(text) ? headings.slice(0, -1) : headings
  const place = headings.length > 0 ? above.join(' › ') : (title ?? '')
  return `${`[${id}] ${visibleText(place)}`.trimEnd()}${page === undefined ? '' : `, page ${page}`}\n${visibleText(text)}`
}

/** The channels that answered and that failed: a passage that was not found may still exist. */
function inWords(channels: SearchResult['channels']): string {
  const answered = channels.filter((it) => it.status === 'answered').map((it) => it.channel)
  const failed = channels.filter((it) => it.status === 'failed').map((it) => `${it.channel} failed: ${it.reason}`)
  const remarks = channels.flatMap((it) => (it.status === 'answered' && it.reason !== undefined ? [it.reason] : []))
  return [`searched by ${answered.length === 0 ? 'nothing' : answered.join(', ')}`, ...remarks, ...failed].join('; ')
}
