// One life of a process: opens the store, resumes or starts the turn, delivers external results, and reports the end.
// Killed at the n-th fault point if requested.
import { agent, createEngine, type SessionState, type TurnResult } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { type Store, storeAt } from './place.ts'
import { definition, scenarios, world } from './scenarios.ts'

export interface Life {
  readonly scenario: string
  readonly directory: string
  readonly url: string
  readonly store: Store
  /** Which fault point kills, from 1; undefined lives on. */
  readonly killAt?: number
}

export interface Report {
  /** Names of the fault points passed, in order. */
  readonly points: string[]
  readonly view: View
}

/** Facts that must be equal however often the process died. */
export interface View {
  readonly messages: SessionState['messages']
  readonly result: Pick<TurnResult, 'status' | 'reason' | 'text' | 'output' | 'steps'>
  readonly turns: number
}

async function live(life: Life): Promise<Report> {
  const points: string[] = []
  const faultPoint = (name: string): void => {
    points.push(name)
    if (points.length === life.killAt) process.kill(process.pid, 'SIGKILL')
  }
  const scenario = scenarios[life.scenario]!
  const it = world(life.directory, faultPoint)
  const backend = storeAt(life.directory, life.store)
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'worker',
        version: '1',
        model: openaiChat({ provider: 'test', model: life.scenario, baseUrl: life.url }),
        instructions: 'Work.',
        limits: { maxRecoveries: 1_000 },
        ...definition(scenario, it, backend),
      }),
    ],
    faultPoint,
    onError: (error) => console.error(error),
  })
  await engine.start()
  const session = engine.session({ user: 'u', session: 's' })
  const { output } = scenario
  // A client that heard nothing asks again with the same id.
  let result = await session.run('Go.', { turnId: 't1', ...(output && { output }) })
  while (result.status === 'paused') {
    const [call] = result.pending
    if (result.reason === 'signal') await session.signal('go', 'now', { id: 'go-1' })
    else if (result.reason === 'sleep') {
      // It ends by itself.
    } else if (call === undefined) await session.decide(result.approvals[0]!.approvalId, { verdict: 'approved' })
    else await session.resolve(call.callId, { content: `${String(call.arguments.word)}: blue` })
    result = await session.wait('t1')
  }
  const state = await session.state()
  await engine.stop()
  await backend.close()
  const { status, reason, text, steps } = result
  return {
    points,
    view: {
      messages: state.messages,
      result: { status, reason, text, output: result.output, steps },
      turns: state.finished.length,
    },
  }
}

process.stdout.write(JSON.stringify(await live(JSON.parse(process.argv[2]!) as Life)))
