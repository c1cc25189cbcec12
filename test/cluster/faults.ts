// What can go wrong. Each fault is put right again before the next one.
import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster } from './cluster.ts'

/** Longer than the lease of three seconds and than a sweep. */
const LONG_MS = 7_000
const SHORT_MS = 1_500

export const FAULTS: Readonly<Record<string, (cluster: Cluster, victim: number) => Promise<void>>> = {
  async 'a replica is killed'(cluster, victim) {
    await cluster.replace(victim, 'SIGKILL')
  },
  async 'a replica is stopped in order'(cluster, victim) {
    await cluster.replace(victim, 'SIGTERM')
  },
  async 'a replica is frozen for longer than its lease'(cluster, victim) {
    cluster.signal(victim, 'SIGSTOP')
    await delay(LONG_MS)
    cluster.signal(victim, 'SIGCONT')
  },
  async 'connections are cut'(cluster, victim) {
    cluster.links[victim]!.postgres.cut()
    cluster.links[victim]!.redis.cut()
    await delay(SHORT_MS)
  },
  async 'requests to the database are lost'(cluster, victim) {
    cluster.links[victim]!.postgres.drop('requests')
    await delay(SHORT_MS)
  },
  async 'statements commit and their answers are lost'(cluster, victim) {
    cluster.links[victim]!.postgres.drop('answers')
    await delay(SHORT_MS)
  },
  async 'PostgreSQL crashes and comes back'(cluster) {
    await cluster.services.restartPostgres()
  },
  async 'Redis comes back empty'(cluster) {
    await cluster.services.restartRedis()
  },
  async 'a replica comes back with a clock that is an hour ahead'(cluster, victim) {
    await cluster.replace(victim, 'SIGKILL', { skewMs: 3_600_000 })
    await delay(SHORT_MS)
    await cluster.replace(victim, 'SIGKILL')
  },
  async 'all connections of the database are ended by its administrator'(cluster) {
    await cluster.endConnections()
  },
}
