// Trees of three levels, whose processes are killed at fault points while their roots are cancelled, calls are approved
// and refused, and agents fail. What must hold is read from the journals afterwards. OXBOW_TREES=N walks N seeds and
// every point.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sqlite } from '@oxbow/backends'
import type { Event } from '@oxbow/core'
import { type ScriptedModel, scriptedModel } from '@oxbow/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { TreeLife } from './tree-child.ts'
import { isApproved, markOf, type Plan, planOf, randomOf, replyTo } from './tree-plan.ts'

const CHILD = fileURLToPath(new URL('./tree-child.ts', import.meta.url))
const SEEDS = Array.from({ length: Number(process.env.OXBOW_TREES ?? 10) }, (_, n) => n + 1)

let model: ScriptedModel
beforeAll(async () => {
  model = await scriptedModel({ scripts: { '*': replyTo } })
})
afterAll(() => model.close())

/** The fault points that were passed; undefined when the process was killed. */
function live(given: TreeLife): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      ['--conditions=oxbow-source', '--disable-warning=ExperimentalWarning', CHILD, JSON.stringify(given)],
      { env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'oxbow-crash-cache') }, timeout: 40_000 },
      (error, stdout, stderr) => {
        if (error === null) resolve(Number(stdout))
        else if (error.signal === 'SIGKILL' && !error.killed) resolve(undefined)
        else reject(new Error(`a life ended with ${error.code ?? error.signal}: ${stderr}`))
      },
    )
  })
}

type Journals = ReadonlyMap<string, readonly Event[]>

async function journalsIn(directory: string): Promise<Journals> {
  const backend = sqlite({ path: join(directory, 'oxbow.db') })
  const all = new Map<string, Event[]>()
  for (const { key } of await backend.journal.list({ limit: 1_000 }))
    all.set(key.session, await backend.journal.read(key, 0, 10_000))
  await backend.close()
  return all
}

const textOf = (content: readonly { readonly type: string; readonly text?: string }[]): string =>
  content.map((it) => it.text ?? '').join('\n')

/** Violated invariants; empty when there are none. */
function problems(journals: Journals, effects: readonly string[], interrupted: boolean): string[] {
  const found: string[] = []
  const say = (condition: boolean, what: string): void => void (condition || found.push(what))
  const started = new Map<string, number>()
  const everythingTold = [...journals.values()].flat().flatMap((it) => {
    if (it.type === 'call.finished') return [textOf(it.content)]
    return it.type === 'child.closed' && it.input !== undefined ? [textOf(it.input)] : []
  })
  /** Whether a turn, or one above it, was stopped: then its result is not awaited. */
  const wasStopped = (session: string, turnId: string): boolean => {
    const events = journals.get(session)!
    const stops = events.some(
      (it) => (it.type === 'turn.failed' || it.type === 'turn.cancelled') && it.turnId === turnId,
    )
    const from = events.find((it) => it.type === 'turn.started' && it.turnId === turnId) as
      | Event<'turn.started'>
      | undefined
    const above = from?.delegation?.ancestors.at(-1)
    return stops || (above !== undefined && wasStopped(above.session, above.turnId))
  }
  for (const [session, events] of journals) {
    const of = <T extends Event['type']>(type: T): Event<T>[] => events.filter((it): it is Event<T> => it.type === type)
    for (const { turnId, input } of of('turn.started')) {
      const ends = [...of('turn.finished'), ...of('turn.failed'), ...of('turn.cancelled')].filter(
        (it) => it.turnId === turnId,
      )
      say(ends.length === 1, `turn ${turnId} of ${session} has ${ends.length} ends`)
      const { id } = JSON.parse(textOf(input)) as Plan
      started.set(id, (started.get(id) ?? 0) + 1)
    }
    for (const { message } of of('model.finished'))
      for (const block of message.blocks)
        if (block.type === 'call') {
          const ends = of('call.finished').filter((it) => it.callId === block.callId).length
          say(ends === 1, `call ${block.callId} of ${session} has ${ends} ends`)
        }
    for (const { childTurnId, session: child, turnId } of of('child.opened')) {
      const closed = of('child.closed').filter((it) => it.childTurnId === childTurnId)
      say(closed.length === 1, `child ${childTurnId} of ${session} was closed ${closed.length} times`)
      const below = journals.get(child) ?? []
      say(
        below.length > 0 || closed[0]?.status === 'cancelled',
        `child ${child} never was, and yet ${closed[0]?.status}`,
      )
      const [first] = below
      const names = first?.type === 'session.opened' ? first.parent?.session : session
      say(names === session, `${child} names ${names} as its parent, not ${session}`)
      // Exactly one agent received the result: by a call or a message, the parent or, if that had ended, one above it.
      const told = everythingTold.filter((it) => it.includes(`(${child}) has ended`)).length
      say(told === 1 || (told === 0 && wasStopped(session, turnId)), `the result of ${child} was told ${told} times`)
    }
    for (const { status, text, session: child } of of('child.closed')) {
      const end = (journals.get(child) ?? []).findLast((it) =>
        ['turn.finished', 'turn.failed', 'turn.cancelled'].includes(it.type),
      )
      say(
        status !== 'done' || (end?.type === 'turn.finished' && text.includes('RESULT<')),
        `${child} is ${status} after ${end?.type}`,
      )
    }
    for (const { status, error, content } of of('call.finished'))
      if (/^(?:Error: )?The agent \w+ \(\w+\) has ended: (?!done)/.test(textOf(content)))
        say(
          status === 'error' && error?.code.startsWith('child_') === true,
          `${session}: ${textOf(content)} is a ${status}`,
        )
  }
  for (const [id, times] of started) say(times === 1, `${id} was started ${times} times`)
  say(new Set(effects).size === effects.length, `done twice: ${effects.join(', ')}`)
  for (const it of effects) {
    const [name, what] = it.split(' ')
    say(name === 'write' && isApproved(what), `${it} ran without permission`)
  }
  const root = journals.get('s')!
  if (!interrupted)
    say(
      root.some((it) => it.type === 'turn.finished'),
      'the root did not finish',
    )
  return found
}

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-tree-'))
  try {
    await work(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function effectsIn(directory: string): string[] {
  const log = join(directory, 'effects.log')
  return existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : []
}

/** One child that is waited for and one in the background, each with a writer that asks. */
const small: Plan = {
  id: 'n',
  end: 'done',
  steps: [false, true].map((background, n) => ({
    spawn: 'editor',
    background,
    plan: {
      id: `n.${n}`,
      end: 'done',
      steps: [
        {
          spawn: 'writer',
          background: false,
          plan: { id: `n.${n}.0`, end: 'done', steps: [{ act: 'write', what: `n.${n}.0.0` }] },
        },
      ],
    },
  })),
}

const KILLS = 2
test.each(Array.from({ length: KILLS }, (_, n) => n))(
  'H10: a small tree comes to the same end wherever its process is killed, part %i',
  { timeout: 1_200_000 },
  async (part) => {
    let points = 0
    await inDirectory(async (directory) => {
      points = (await live({ plan: small, directory, url: model.url }))!
      expect(problems(await journalsIn(directory), effectsIn(directory), false)).toEqual([])
    })
    expect(points).toBeGreaterThan(40)
    const stride = KILLS * (process.env.OXBOW_TREES === undefined ? 12 : 1)
    const wrong: string[] = []
    for (let killAt = 1 + part; killAt <= points; killAt += stride)
      await inDirectory(async (directory) => {
        await live({ plan: small, directory, url: model.url, killAt })
        await live({ plan: small, directory, url: model.url })
        const found = problems(await journalsIn(directory), effectsIn(directory), false)
        if (found.length > 0) wrong.push(`killed at ${killAt}: ${found.join('; ')}`)
      })
    expect(wrong).toEqual([])
  },
)

test.each(SEEDS)(
  'H10: the tree of seed %i: no orphan, nothing lost or reported twice, no extra authority',
  { timeout: 180_000 },
  async (seed) => {
    const random = randomOf(seed * 7_919)
    const plan = planOf(seed)
    await inDirectory(async (directory) => {
      const point = (): number => 1 + Math.floor(random() * 60)
      const kills = Array.from({ length: Math.floor(random() * 4) }, point)
      const interruptAt = random() < 0.35 ? point() : undefined
      const given = { plan, directory, url: model.url, ...(interruptAt !== undefined && { interruptAt }) }
      for (const killAt of kills) await live({ ...given, killAt })
      await live(given)
      const effects = effectsIn(directory)
      const journals = await journalsIn(directory)
      const interrupted = journals.get('s')!.some((it) => it.type === 'interrupt.requested')
      expect(problems(journals, effects, interrupted)).toEqual([])
      if (!interrupted && plan.steps.length > 0) expect(journals.size).toBeGreaterThan(1)
      // The results of agents that ended well reached a root that continued.
      const text = JSON.stringify([...journals.get('s')!])
      for (const step of plan.steps)
        if (!interrupted && 'spawn' in step && step.plan.end === 'done') expect(text).toContain(markOf(step.plan.id))
    })
  },
)
