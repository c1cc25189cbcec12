// The self-tests of tools: each runs as one call of a turn, in a session that nothing keeps.
import { isDeepStrictEqual } from 'node:util'
import { memory } from '@oxbow/backends/memory'
import { agent, createEngine, type Model, noUsage, OxbowError, type Tool, type ToolContext } from '@oxbow/core'

export interface ToolTestOutcome {
  readonly tool: string
  readonly test: string
  readonly passed: boolean
  /** What differs, or why the call has no result. */
  readonly problem?: string
}

/**
 * Runs the `tests` of tools one after the other, as calls of a turn: with the same validation, time limits and output
 * schema. Approvals are given, and nothing is tried again. Apart from what the tools do, nothing is stored or sent.
 *
 * @param tools those without `tests` are skipped
 * @returns the outcomes, in order
 * @throws OxbowError `invalid_option` for what is not a list of tools
 * @example const failed = (await testTools([add])).filter((it) => !it.passed)
 */
export async function testTools(tools: Iterable<Tool>): Promise<ToolTestOutcome[]> {
  const given = typeof tools === 'object' && tools !== null && Symbol.iterator in tools ? [...tools] : undefined
  if (given === undefined || given.some((it) => !Array.isArray(it?.tests)))
    throw new OxbowError('invalid_option', 'testTools(): needs a list of tools that were made with tool()')
  const outcomes: ToolTestOutcome[] = []
  for (const tool of given)
    for (const it of tool.tests) {
      const problem = await problemOf(tool, it)
      const passed = problem === undefined
      outcomes.push({ tool: tool.name, test: it.name, passed, ...(!passed && { problem }) })
    }
  return outcomes
}

const USER = 'tool-test'

async function problemOf(tool: Tool, { input, expect }: Tool['tests'][number]): Promise<string | undefined> {
  let given: { result: unknown } | { error: unknown } | undefined
  const watched: Tool = {
    ...tool,
    retries: 0,
    run: async (...call: [never, ToolContext]) => {
      try {
        const result = await tool.run!(...call)
        given = { result }
        return result
      } catch (error) {
        given = { error }
        throw error
      }
    },
  }
  const model = calling(tool.name, JSON.stringify(input))
  const tester = agent({ name: USER, model, instructions: 'Test the tool.', tools: [watched], allow: [tool.name] })
  const engine = createEngine({
    backend: memory(),
    agents: [tester],
    onError: (error) => {
      given ??= { error }
    },
  })
  try {
    const permissions = [tool.permission, tool.approver].filter((it) => it !== undefined)
    const principal = { user: USER, ...(permissions.length > 0 && { permissions }) }
    const session = engine.session({ user: USER, session: USER })
    let result = await session.run('Test.', { principal })
    const [approval] = result.approvals
    if (approval !== undefined) {
      const { turnId } = await session.decide(approval.approvalId, { verdict: 'approved' }, { principal })
      result = await session.wait(turnId)
    }
    const [call] = result.calls
    if (call?.status === 'success' && given !== undefined && 'result' in given) {
      const [wanted, got] = [plain(expect), plain(given.result)]
      return isDeepStrictEqual(wanted, got) ? undefined : `expected ${shown(wanted)}, got ${shown(got)}`
    }
    if (given !== undefined && 'error' in given) return `it threw: ${String(given.error)}`
    const [why] = call?.content ?? []
    return why?.type === 'text' ? why.text : `the call has no result: ${result.error?.message ?? result.reason}`
  } finally {
    await engine.stop(0)
  }
}

/** As JSON writes it, which is what the model is shown. */
const plain = (value: unknown): unknown => {
  const text = JSON.stringify(value, (_, it: unknown) => (typeof it === 'bigint' ? String(it) : it))
  return text === undefined ? undefined : JSON.parse(text)
}

const MAX_SHOWN = 300
const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

/** A model that calls the tool once. */
const calling = (tool: string, args: string): Model => ({
  id: 'tool-test:once',
  async generate({ messages }) {
    const over = messages.at(-1)?.role === 'tool'
    const block = over
      ? ({ type: 'text', text: 'Done.' } as const)
      : ({ type: 'call', callId: '', tool, arguments: args } as const)
    return { blocks: [block], finishReason: over ? 'stop' : 'calls', usage: noUsage, model: 'once' }
  },
})
