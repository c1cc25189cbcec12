// `oxbow tools test`: the self-tests that tools carry.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { OxbowError, type Tool } from '@oxbow/core'
import { isObject, nearest } from '@oxbow/core/internal'
import { EXIT } from '../exit-codes.ts'
import { coloured, plain, printable } from '../terminal/transcript.ts'
import { type ToolTestOutcome, testTools } from '../tool-tests.ts'
import { withAgents } from './agents.ts'

interface ToolsCommand {
  readonly module?: string
  readonly json?: boolean
}

/** Runs the self-tests of the named tools (default: all). Exit code 1: one failed, or there was none to run. */
export async function testToolsCommand(names: readonly string[], { module, json }: ToolsCommand): Promise<void> {
  if (module !== undefined) await report(await toolsOf(module), names, json)
  else
    await withAgents({}, (all) => {
      const tools = new Map(all.flatMap(({ agent }) => [...agent.tools]))
      return report([...tools.values()], names, json)
    })
  // A tool that ran out of time may keep the process alive.
  process.stdout.write('', () => process.exit())
}

async function report(all: readonly Tool[], names: readonly string[], json = false): Promise<void> {
  const tools = chosen(all, names)
  const outcomes = await testTools(tools)
  for (const it of outcomes) console.log(json ? JSON.stringify(it) : inWords(it))
  const untested = tools.filter((it) => it.tests.length === 0).map((it) => it.name)
  const failed = outcomes.filter((it) => !it.passed).length
  // On standard error, because scripts read standard output line by line.
  const without = untested.length === 0 ? '' : ` Without tests: ${untested.join(', ')}.`
  console.error(printable(`${outcomes.length - failed} passed, ${failed} failed.${without}`))
  if (failed > 0 || outcomes.length === 0) process.exitCode = EXIT.failed
}

function chosen(all: readonly Tool[], names: readonly string[] = []): Tool[] {
  for (const name of names)
    if (!all.some((it) => it.name === name)) {
      const known = all.map((it) => it.name)
      const close = nearest(name, known)
      throw new OxbowError(
        'options_invalid',
        `Unknown tool ${JSON.stringify(name)}${close === undefined ? '.' : `; did you mean ${close}?`} Tools: ${known.join(', ') || 'none'}.`,
      )
    }
  return all.filter((it) => names.length === 0 || names.includes(it.name))
}

/** The tools that a module exports, alone, in lists or as the tools of agents. */
async function toolsOf(path: string): Promise<Tool[]> {
  const exported = Object.values((await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>)
  const found = exported.flatMap((it) => {
    if (isObject(it) && it.tools instanceof Map) return [...it.tools.values()]
    return Array.isArray(it) ? it : [it]
  })
  return [...new Set(found)].filter((it): it is Tool => isObject(it) && 'jsonSchema' in it && Array.isArray(it.tests))
}

function inWords({ tool, test, passed, problem }: ToolTestOutcome): string {
  const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
  if (passed) return printable(`✓ ${tool}: ${test}`)
  return style.red(printable(`✗ ${tool}: ${test}: ${problem}`))
}
