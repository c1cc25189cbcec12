// One life of a process that works on a tree: runs or takes up the root's turn, decides on all that is asked anywhere,
// and reports when nothing is left to do. Killed, or asked to stop the root, at the n-th fault point.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '@oxbow/backends'
import { type AgentDefinition, agent, createEngine, type Session, type Tool, tool } from '@oxbow/core'
import { subAgents } from '@oxbow/harness'
import { openaiChat } from '@oxbow/models'
import { until } from '@oxbow/testing'
import { isApproved, type Plan, taskOf } from './tree-plan.ts'

export interface TreeLife {
  readonly plan: Plan
  readonly directory: string
  readonly url: string
  readonly killAt?: number
  readonly interruptAt?: number
}

const life = JSON.parse(process.argv[2]!) as TreeLife
const key = { user: 'u', session: 's' }
let points = 0
let interrupt = (): void => {}
const faultPoint = (): void => {
  points += 1
  if (points === life.killAt) process.kill(process.pid, 'SIGKILL')
  if (points === life.interruptAt) interrupt()
}

const acting = (name: string, effects: Tool['effects']): Tool =>
  tool({
    name,
    description: 'Acts.',
    effects: [...effects],
    input: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
    run({ what }) {
      appendFileSync(join(life.directory, 'effects.log'), `${name} ${String(what)}\n`)
      return 'ok'
    },
  })

const define = (name: string, more: Partial<AgentDefinition>) =>
  agent({
    name,
    version: '1',
    model: openaiChat({ provider: 'test', model: name, baseUrl: life.url }),
    instructions: 'Work.',
    limits: { maxRecoveries: 1_000 },
    ...more,
  })
const grant = { effects: ['write'] as const }
const below = (it: ReturnType<typeof define>) => ({
  capabilities: [subAgents([{ description: 'Works.', agent: it }], { grant, backgroundAfterMs: 60_000 })],
})
const writer = define('writer', {
  tools: [acting('write', ['write']), acting('forbidden', ['exec'])],
  allow: ['forbidden'],
})

const backend = sqlite({ path: join(life.directory, 'oxbow.db') })
const engine = createEngine({
  backend,
  agents: [define('lead', below(define('editor', below(writer))))],
  faultPoint,
  onError: (error) => console.error(error),
})
interrupt = () => void engine.session(key).interrupt({ turnId: 't1' })
await engine.start()
const running = engine
  .session(key)
  .submit(taskOf(life.plan), { turnId: 't1' })
  .catch((error: unknown) => console.error(error))

/** Decides on everything pending, at any level: above, below, or both at once. */
async function decideIn(session: Session): Promise<void> {
  const { turn } = await session.state()
  for (const { approval, finished } of turn?.calls ?? []) {
    if (approval === undefined || approval.resolved !== undefined || finished !== undefined) continue
    const { approvalId, arguments: asked } = approval.requested
    const verdict = isApproved(asked.what) ? 'approved' : 'denied'
    await session.decide(approvalId, { verdict }).catch(() => {})
  }
}

await running
await until(
  async () => {
    const sessions = (await engine.sessions({})).map((it) => engine.session(it.key))
    await Promise.all(sessions.map(decideIn))
    const states = await Promise.all(sessions.map((it) => it.state()))
    return states.every(
      (it) =>
        it.turn === undefined &&
        it.undelivered.length === 0 &&
        it.children.every((child) => child.closed !== undefined),
    )
  },
  { deadlineMs: 25_000 },
)
process.stdout.write(String(points))
await engine.stop()
await backend.close()
