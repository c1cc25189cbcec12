// Walks the kill points: one life that is killed at each of them, then lives until the turn has ended, then the
// comparison with the undisturbed run.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ScriptedModel, scriptedModel } from '@oxbow/testing'
import type { Life, Report, View } from './child.ts'
import { dropStore, type Store } from './place.ts'
import { effects, replyTo, scenarios } from './scenarios.ts'

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))

export interface Undisturbed {
  readonly report: Report
  readonly effects: string[]
}

export const startModel = (): Promise<ScriptedModel> =>
  scriptedModel({
    scripts: Object.fromEntries(
      Object.entries(scenarios).map(([name, it]) => [name, (request) => replyTo(it, request)]),
    ),
  })

/** Undefined when the process was killed. */
function live(life: Life): Promise<Report | undefined> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['--conditions=oxbow-source', '--disable-warning=ExperimentalWarning', CHILD, JSON.stringify(life)],
      { env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'oxbow-crash-cache') }, timeout: 30_000 },
      (error, stdout, stderr) => {
        if (error === null) resolve(JSON.parse(stdout) as Report)
        else if (error.signal === 'SIGKILL' && !error.killed) resolve(undefined)
        else reject(new Error(`${life.scenario}: a life ended with ${error.code ?? error.signal}: ${stderr}`))
      },
    )
  })
}

async function inDirectory<T>(store: Store, work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-crash-'))
  try {
    return await work(directory)
  } finally {
    await dropStore(directory, store)
    rmSync(directory, { recursive: true })
  }
}

export const undisturbed = (scenario: string, url: string, store: Store = 'sqlite'): Promise<Undisturbed> =>
  inDirectory(store, async (directory) => {
    const report = await live({ scenario, directory, url, store })
    assert(report !== undefined, 'the undisturbed run was killed')
    return { report, effects: effects(directory) }
  })

/** Kills one life after the other at the given points, lets the last one live, and compares. */
export const survives = (
  scenario: string,
  url: string,
  kills: readonly number[],
  calm: Undisturbed,
  store: Store = 'sqlite',
): Promise<void> =>
  inDirectory(store, async (directory) => {
    // A later process may end before its kill point: then there is nothing left to kill.
    for (const killAt of kills) if ((await live({ scenario, directory, url, store, killAt })) !== undefined) break
    const report = await live({ scenario, directory, url, store })
    assert(report !== undefined)
    compare(scenario, report.view, effects(directory), calm)
  })

function compare(scenario: string, view: View, done: readonly string[], calm: Undisturbed): void {
  const unknown = unknownCalls(view)
  const allowed = scenarios[scenario]!.mayBeUnknown ?? []
  for (const it of unknown)
    assert(allowed.includes(it), `the outcome of ${it} is unknown, though it could be found out`)

  assert.deepEqual(neutral(view), neutral(calm.report.view, unknown))
  assert.equal(new Set(done).size, done.length, `done twice: ${done.join(', ')}`)
  if (unknown.length === 0) assert.deepEqual(done, calm.effects)
  else assert(done.every((it) => calm.effects.includes(it)))
}

const results = (view: View) => view.messages.flatMap((it) => it.blocks).filter((it) => it.type === 'result')

const unknownCalls = (view: View): string[] =>
  results(view)
    .filter((it) => it.status === 'unknown')
    .map((it) => it.tool)

/** The view without the results of calls whose outcome is unknown in the disturbed run. */
function neutral(view: View, unknown: readonly string[] = unknownCalls(view)): unknown {
  const messages = view.messages.map((message) => ({
    ...message,
    blocks: message.blocks.map((it) =>
      it.type === 'result' && unknown.includes(it.tool) ? { ...it, status: 'unknown', content: [] } : it,
    ),
  }))
  return { ...view, messages }
}
