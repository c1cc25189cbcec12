// Random trees of agents, from a seed. A task carries its plan, so that what a model answers depends on nothing else.
import type { Reply, ScriptedRequest } from '@oxbow/testing'

export interface Plan {
  readonly id: string
  readonly steps: readonly Step[]
  readonly end: 'done' | 'empty' | 'fail'
}

export type Step =
  | { readonly spawn: 'editor' | 'writer'; readonly background: boolean; readonly plan: Plan }
  | { readonly wait: true }
  | { readonly act: 'write' | 'forbidden'; readonly what: string }

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let it = Math.imul(state ^ (state >>> 15), state | 1)
    it ^= it + Math.imul(it ^ (it >>> 7), it | 61)
    return ((it ^ (it >>> 14)) >>> 0) / 2 ** 32
  }
}

export function planOf(seed: number): Plan {
  const random = randomOf(seed)
  const upTo = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  const end = (): Plan['end'] => (random() < 0.75 ? 'done' : random() < 0.5 ? 'empty' : 'fail')
  const make = (id: string, level: number): Plan => {
    const steps: Step[] = []
    const count = level === 2 ? upTo(0, 2) : upTo(1, 3 - level)
    for (let n = 0; n < count; n++) {
      const what = `${id}.${n}`
      if (level === 2) steps.push({ act: random() < 0.75 ? 'write' : 'forbidden', what })
      else
        steps.push({
          spawn: level === 0 ? 'editor' : 'writer',
          background: random() < 0.45,
          plan: make(what, level + 1),
        })
    }
    if (steps.some((it) => 'background' in it && it.background) && random() < 0.7) steps.push({ wait: true })
    return { id, steps, end: level === 0 ? 'done' : end() }
  }
  return make('n', 0)
}

/** The person's decision on a call, always the same. */
export const isApproved = (what: unknown): boolean => String(what).length % 2 === 0 || String(what).endsWith('0')

export const taskOf = (plan: Plan): string => JSON.stringify(plan)

export const markOf = (id: string): string => `RESULT<${id}>`

/** The answer to a request: the next step of the plan in its first message. */
export function replyTo({ messages, model }: ScriptedRequest): Reply {
  const task = messages.find((it) => it.role === 'user')
  const plan = JSON.parse(String(task!.content)) as Plan
  const done = messages.filter(
    (it) => it.role === 'assistant' && (it as { tool_calls?: unknown }).tool_calls !== undefined,
  ).length
  const step = plan.steps[done]
  if (step === undefined) return ending(plan, model)
  if ('wait' in step) return { calls: [{ name: 'wait_async_results', arguments: { seconds: 30 } }] }
  if ('act' in step) return { calls: [{ name: step.act, arguments: { what: step.what } }] }
  const { spawn: agent, background, plan: below } = step
  return { calls: [{ name: 'agent_spawn', arguments: { agent, background, task: taskOf(below) } }] }
}

function ending({ id, end }: Plan, model: string): Reply {
  if (end === 'fail') return { status: 401, body: {} }
  if (model === 'lead') return { text: 'Told.' }
  const conclusion = end === 'empty' ? '' : markOf(id)
  return { text: JSON.stringify({ status: 'done', conclusion, facts: [], open_questions: [] }) }
}
