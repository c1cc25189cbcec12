// Chooses tools by the words of a question and fills their parameters.
import type { ModelRequest, ToolSpec } from '@oxbow/core'
import { fillArguments } from './fill.ts'
import { findExpression } from './find.ts'
import { pairsOf, wordsOf } from './words.ts'

export interface PlannedCall {
  readonly tool: string
  readonly arguments: Record<string, unknown>
}

const maxCalls = 2

/** At most two calls, of different tools, best match first; none without a match. */
export function planCalls(
  question: string,
  tools: readonly ToolSpec[],
  choice: ModelRequest['toolChoice'] = 'auto',
): PlannedCall[] {
  const forced = typeof choice === 'object' ? tools.find((tool) => tool.name === choice.tool) : undefined
  if (forced) return [call(forced, question, true)!]
  const planned: PlannedCall[] = []
  const words = new Set(wordsOf(question))
  let text = question
  let rest = tools
  while (planned.length < maxCalls) {
    const found = best(words, text, rest)
    if (!found) break
    planned.push(found.call)
    rest = rest.filter((tool) => tool !== found.tool)
    // Words matched to the first tool are not matched to a second: `read the file` must not delete it as well.
    for (const word of wordsOf(`${nameText(found.tool)} ${found.tool.description}`)) words.delete(word)
    if (isCalculator(found.tool)) text = text.replace(/\d[\d.]*/g, ' ')
  }
  const searcher = planned.length === 0 && isQuestion(question) ? tools.find(isSearcher) : undefined
  const looked = searcher && call(searcher, question, false)
  if (looked) return [looked]
  if (planned.length === 0 && choice === 'required' && tools[0]) return [call(tools[0], question, true)!]
  return planned
}

/** A word of the name counts three, one of the description or a parameter 1.5: one of those is not enough. */
const threshold = 3

function best(words: ReadonlySet<string>, text: string, tools: readonly ToolSpec[]) {
  const ranked = tools
    .map((tool) => ({ tool, score: fit(words, text, tool) }))
    .filter(({ score }) => score >= threshold)
    .sort((a, b) => b.score - a.score)
  for (const { tool } of ranked) {
    const filled = call(tool, text, false)
    if (filled) return { tool, call: filled }
  }
  return undefined
}

function call(tool: ToolSpec, text: string, force: boolean): PlannedCall | undefined {
  const filled = fillArguments(tool, text, force)
  return filled && { tool: tool.name, arguments: filled }
}

function fit(words: ReadonlySet<string>, text: string, tool: ToolSpec): number {
  const calculates = isCalculator(tool)
  if (calculates && !/\d/.test(text)) return 0
  const name = new Set(wordsOf(nameText(tool)))
  const other = new Set(wordsOf(`${tool.description} ${parametersOf(tool).join(' ').replaceAll('_', ' ')}`))
  let score = calculates && findExpression(text) ? 6 : 0
  for (const word of words) score += name.has(word) ? 3 : other.has(word) ? 1.5 : 0
  if (score > 0) score += 2 * coverage(tool, text)
  const pairs = pairsOf(tool.description)
  for (const pair of pairsOf(text)) if (pairs.has(pair)) score += 2
  return score
}

/** How much of the tool's name is in the question, small words included: `list my notes` beats `save_note`. */
function coverage(tool: ToolSpec, text: string): number {
  const said = new Set(lettersOf(text))
  const parts = lettersOf(nameText(tool))
  return parts.length === 0 ? 0 : parts.filter((it) => said.has(it)).length / parts.length
}

const lettersOf = (text: string): string[] => text.toLowerCase().match(/[a-z]+/g) ?? []

const isQuestion = (text: string): boolean =>
  /[?\uff1f]|^(what|who|where|when|why|how|which)\b|什么|怎么|如何|为什么/i.test(text)
const isSearcher = (tool: ToolSpec): boolean => /(^|_)(retrieve|knowledge)(_|$)/i.test(tool.name)

const nameText = (tool: ToolSpec): string => tool.name.replaceAll('_', ' ')
const parametersOf = (tool: ToolSpec): string[] => Object.keys((tool.input.properties ?? {}) as object)
const isCalculator = (tool: ToolSpec): boolean =>
  wordsOf(nameText(tool)).includes('calculate') || parametersOf(tool).some((name) => /expression|formula/i.test(name))
