// `oxbow agents`: which agents there are, and how each is defined.
import { memory } from '@oxbow/backends'
import { type Agent, OxbowError } from '@oxbow/core'
import { nearest } from '@oxbow/core/internal'
import { createLogger, createMetrics, loggingMiddleware } from '@oxbow/server'
import { type Inspected, type InspectedTool, inspect } from '../inspect.ts'
import { atTerminal, configOf, openRuntime, type RuntimeOptions } from '../runtime.ts'
import { coloured, plain, printable, type Style } from '../terminal/transcript.ts'

interface AgentsCommand extends RuntimeOptions {
  readonly json?: boolean
}

export function listAgents(options: AgentsCommand): Promise<void> {
  return withAgents(options, async (all) => {
    for (const { agent, parent } of all) {
      const { name, model, tools } = agent
      const facts = { name, model: model.id, tools: tools.size, ...(parent && { parent: parent.name }) }
      const below = parent === undefined ? '' : ` (for ${parent.name})`
      if (options.json) console.log(JSON.stringify(facts))
      else console.log(printable(`${name.padEnd(20)} ${model.id.padEnd(32)} ${tools.size} tools${below}`))
    }
  })
}

export function inspectAgent(name: string, options: AgentsCommand): Promise<void> {
  return withAgents(options, async (all) => {
    const found = all.find((it) => it.agent.name === name)
    if (found === undefined) {
      const names = all.map((it) => it.agent.name)
      const close = nearest(name, names)
      throw new OxbowError(
        'unknown_agent',
        `Unknown agent ${JSON.stringify(name)}${close === undefined ? '.' : `; did you mean ${close}?`} Agents: ${names.join(', ')}.`,
      )
    }
    const inspected = await inspect(found.agent, found.parent)
    console.log(options.json ? JSON.stringify(inspected) : inWords(inspected))
  })
}

interface Placed {
  readonly agent: Agent
  readonly parent?: Agent
}

/** As in a service, but without a store: read commands do not create one. */
export async function withAgents(
  options: RuntimeOptions,
  work: (all: readonly Placed[]) => Promise<void>,
): Promise<void> {
  const config = await configOf(options)
  const middleware = [createMetrics().middleware, loggingMiddleware(createLogger(config.log))]
  const runtime = await openRuntime(config, { ...atTerminal, middleware }, memory())
  try {
    const { agent } = runtime
    await work([{ agent }, ...agent.agents.map((it) => ({ agent: it, parent: agent }))])
  } finally {
    await runtime.engine.stop()
    await runtime.close()
  }
}

const MARKS = { allow: '✓', ask: '?', deny: '✗' } as const

function inWords(it: Inspected): string {
  const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
  const title = (text: string): string => `\n${style.bold(text)}`
  const { allow, ask, deny } = it.rules
  const rules = [...allow.map(({ rule, from }) => `allow ${rule} (${from})`), ...ask.map((rule) => `ask ${rule}`)]
  rules.push(...deny.map((rule) => `deny ${rule}`))
  const lines = [
    style.bold(printable(it.name)) + style.dim(` version ${it.version}`),
    printable(`model  ${it.model}${it.contextWindow === undefined ? '' : `, window ${it.contextWindow} tokens`}`),
    `mode   ${it.mode}${it.parent === undefined ? '' : `; also under the rules of ${it.parent}`}`,
    title('Prompt'),
    ...it.prompt.flatMap(({ from, title: name, moving, untrusted, text }) => [
      style.dim(
        printable(`— ${name} (${from}${moving ? ', may change with each step' : ''}${untrusted ? ', as data' : ''})`),
      ),
      printable(text),
    ]),
    title('Tools'),
    ...(it.tools.length === 0 ? ['none'] : it.tools.map((tool) => toolLine(tool, style))),
    title('Rules'),
    ...(rules.length === 0 ? ['none'] : rules.map(printable)),
    title('Around it'),
    `middleware       ${it.middleware.map(({ name, from, hooks }) => `${name} (${from}: ${hooks.join(', ')})`).join('; ') || 'none'}`,
    `sub-agents       ${it.agents.map(({ name, model }) => `${name} (${model})`).join(', ') || 'none'}`,
    `compaction       ${it.compacts ? 'yes' : 'no'}`,
    `reviews answers  ${it.reviews ? 'yes' : 'no'}`,
    title('Limits'),
    ...Object.entries({ ...it.limits, ...it.sampling }).map(
      ([name, value]) => `${name.padEnd(18)} ${typeof value === 'object' ? JSON.stringify(value) : value}`,
    ),
  ]
  return lines.join('\n')
}

function toolLine(
  { name, from, effects, decision, rule, byArguments, permission }: InspectedTool,
  style: Style,
): string {
  const needs = permission === undefined ? '' : `, needs ${permission}`
  const open = byArguments ? ', depends on the arguments' : ''
  const line = `${MARKS[decision]} ${name.padEnd(20)} ${effects.join(' ').padEnd(10)} ${decision} by ${rule}${open}${needs}`
  return printable(line) + style.dim(printable(` (${from})`))
}
