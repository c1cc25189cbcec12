// Three replicas on one store, each with a network of its own, and a client that submits, decides and follows.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createEngine, type Engine, isEvent } from '@oxbow/core'
import { scriptedModel } from '@oxbow/testing'
import pg from 'pg'
import { type Ledger, startLedger } from './ledger.ts'
import { type Link, linkTo } from './proxy.ts'
import { type Services, startServices } from './services.ts'
import { backendAt, KINDS, type Kind, type Place, replyTo, workAt } from './work.ts'

const REPLICA = fileURLToPath(new URL('./replica.ts', import.meta.url))
const REPLICAS = 3
const TENANT = 'default'

export interface Cluster {
  readonly services: Services
  readonly ledger: Ledger
  readonly links: readonly { readonly postgres: Link; readonly redis: Link }[]
  readonly client: Engine
  signal(victim: number, signal: NodeJS.Signals): void
  /** Ends a replica and starts another one in its place. */
  replace(victim: number, signal: NodeJS.Signals, more?: { skewMs: number }): Promise<void>
  endConnections(): Promise<void>
  heal(): void
  close(): Promise<void>
}

export async function startCluster(store: Place['store']): Promise<Cluster> {
  const services = await startServices()
  const ledger = await startLedger()
  const model = await scriptedModel({ scripts: { '*': replyTo } })
  const place: Place = {
    store,
    postgres: services.postgres,
    redis: services.redis,
    model: model.url,
    ledger: ledger.url,
  }
  const links = await Promise.all(
    Array.from({ length: REPLICAS }, async () => ({
      postgres: await linkTo(services.postgres),
      redis: await linkTo(services.redis),
    })),
  )
  const replicas: ChildProcess[] = []
  const start = async (index: number, more?: { skewMs: number }): Promise<void> => {
    const { postgres, redis } = links[index]!
    const at = { ...place, postgres: postgres.url, redis: redis.url, ...more }
    const child = spawn(
      process.execPath,
      ['--conditions=oxbow-source', '--disable-warning=ExperimentalWarning', REPLICA, JSON.stringify(at)],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    )
    replicas[index] = child
    await Promise.race([once(child, 'message'), once(child, 'exit')])
  }
  const client = createEngine({
    backend: backendAt(place),
    agents: [workAt(place)],
    role: 'api',
    onError: () => {},
  })
  await client.start()
  await Promise.all(links.map((_, index) => start(index)))
  const end = async (index: number, signal: NodeJS.Signals): Promise<void> => {
    const child = replicas[index]!
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  return {
    services,
    ledger,
    links,
    client,
    signal: (victim, signal) => void replicas[victim]!.kill(signal),
    async replace(victim, signal, more) {
      await end(victim, signal)
      await start(victim, more)
    },
    async endConnections() {
      const admin = new pg.Client({ connectionString: services.postgres })
      await admin.connect()
      await admin
        .query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()')
        .catch(() => {})
      await admin.end().catch(() => {})
    },
    heal() {
      for (const it of links) {
        it.postgres.heal()
        it.redis.heal()
      }
    },
    async close() {
      await Promise.all(replicas.map((_, index) => end(index, 'SIGKILL')))
      await client.stop(0)
      await client.backend.close()
      for (const it of links) {
        it.postgres.close()
        it.redis.close()
      }
      await model.close()
      ledger.close()
      await services.close()
    },
  }
}

/** Tries again while the store is away: a client would. */
async function insist<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++)
    try {
      return await work()
    } catch (error) {
      if (attempt >= 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
}

export interface Submitted {
  readonly user: string
  readonly session: string
  readonly turnId: string
  readonly kind: Kind
}

/** One turn, from its input to its end, with whatever it needs of a person. Resolves with what a reader has seen. */
export async function oneTurn({ client }: Cluster, turn: Submitted, giveUp: AbortSignal): Promise<number[]> {
  const session = client.session({ tenant: TENANT, user: turn.user, session: turn.session })
  await insist(() => session.submit(turn.kind, { turnId: turn.turnId }))
  const seen: number[] = []
  while (!giveUp.aborted) {
    try {
      for await (const item of session.follow({ after: seen.at(-1) ?? 0, signal: giveUp })) {
        if (!isEvent(item)) continue
        seen.push(item.seq)
        if (item.type === 'session.opened' || item.turnId !== turn.turnId) continue
        if (item.type === 'turn.finished' || item.type === 'turn.failed' || item.type === 'turn.cancelled') return seen
        if (item.type === 'approval.requested')
          await insist(() => session.decide(item.approvalId, { verdict: 'approved' })).catch(() => {})
        if (item.type === 'work.started' && item.kind === 'signal')
          await insist(() => session.signal('go', 'now', { id: `go-${turn.turnId}`, turnId: turn.turnId })).catch(
            () => {},
          )
      }
    } catch {
      // Followers end when the store is away; a reader comes back where it was.
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  return seen
}

export const kindOf = (n: number): Kind => KINDS[n % KINDS.length]!
