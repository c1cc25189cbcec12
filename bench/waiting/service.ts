// What a service costs whose tasks wait for people.
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export interface Job {
  /** The store. */
  readonly file: string
  readonly modelUrl: string
}

export type Asked = 'cpu' | 'stop'
export type Told = { readonly url: string; readonly listenMs: number } | { readonly cpuMs: number }

export interface WaitingService {
  readonly url: string
  /** From the open store to the service being ready. */
  readonly listenMs: number
  /** CPU that the process, with all of its threads, has used so far. */
  cpuMs(): Promise<number>
  stop(): Promise<void>
}

export async function startWaiting(job: Job): Promise<WaitingService> {
  const execArgv = process.execArgv.includes('-C') ? process.execArgv : ['--conditions=oxbow-source']
  const child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), { execArgv })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.send(job)
  const { url, listenMs } = (await told(child)) as { url: string; listenMs: number }
  return {
    url,
    listenMs,
    async cpuMs() {
      child.send('cpu' satisfies Asked)
      return ((await told(child)) as { cpuMs: number }).cpuMs
    },
    async stop() {
      if (child.connected) child.send('stop' satisfies Asked)
      await exited
    },
  }
}

const told = (child: ChildProcess): Promise<Told> =>
  new Promise((resolve, reject) => {
    const gone = (): void => reject(new Error('the service ended without an answer'))
    child.once('exit', gone)
    child.once('message', (it) => {
      child.off('exit', gone)
      resolve(it as Told)
    })
  })

export async function post(url: string, path: string, body: object): Promise<{ status: number; body: never }> {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as never }
}

/** Starts this many tasks, each in its own session, that wait for an approval. Resolves with the approval ids. */
export async function fill({ url }: Pick<WaitingService, 'url'>, tasks: number): Promise<string[]> {
  const ids: string[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < tasks) {
      const { body } = await post(url, '/api/chat', { sessionId: `s${next++}`, turnId: 't', message: 'Pay.' })
      ids.push((body as { approvals: { id: string }[] }).approvals[0]!.id)
    }
  }
  await Promise.all(Array.from({ length: 20 }, worker))
  return ids
}

/** CPU per second while nothing comes, in milliseconds. The window holds several sweeps of the engine. */
export async function idleCpu(service: WaitingService, windowMs: number): Promise<number> {
  const before = await service.cpuMs()
  const startedAt = performance.now()
  await delay(windowMs)
  return (((await service.cpuMs()) - before) / (performance.now() - startedAt)) * 1_000
}

/** Decides on all of them, this many at once. Resolves with the decisions per second. */
export async function approvalsPerSecond(
  { url }: Pick<WaitingService, 'url'>,
  ids: readonly string[],
  atOnce: number,
): Promise<number> {
  let next = 0
  const startedAt = performance.now()
  const worker = async (): Promise<void> => {
    while (next < ids.length) {
      const { status } = await post(url, `/api/approvals/${ids[next++]}`, { verdict: 'approved' })
      if (status !== 200) throw new Error(`a decision was answered with ${status}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return ids.length / ((performance.now() - startedAt) / 1_000)
}
