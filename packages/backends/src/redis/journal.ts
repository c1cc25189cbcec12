// Sessions as streams of events, with indexes in sorted sets.
import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type AuditRecord,
  type Event,
  type Journal,
  OxbowError,
  type SessionKey,
  type SessionQuery,
  type SessionStatus,
  type SessionSummary,
} from '@oxbow/core'
import { assertAudit, assertDense, assertKey, mapKey } from '../keys.ts'
import type { RedisBus } from './bus.ts'
import { redisLife } from './life.ts'
import type { Server } from './server.ts'

/** Rows of an index or of the audit log that are looked at in one trip. */
const PAGE = 500

const topicOf = (member: string): string => `journal ${member}`

export function redisJournal(server: Server, bus: RedisBus): Journal & { idle(): Promise<unknown> } {
  const { key: keyOf } = server
  const underWay = new Set<Promise<unknown>>()
  const hashOf = (member: string) => keyOf('session', member)
  const indexOf = (tenant?: string, user?: string) =>
    tenant === undefined || user === undefined ? keyOf('sessions') : keyOf('sessions', tenant, user)
  const memberOf = (key: SessionKey): string => {
    server.assertOpen()
    assertKey(key)
    return mapKey(key)
  }
  const corrupt = (key: SessionKey, what: string) =>
    new OxbowError(
      'journal_corrupt',
      `${server.name} is damaged: session ${key.session} of ${key.user} ${what}. Restore a backup.`,
    )

  async function summaries(members: readonly string[]): Promise<SessionSummary[]> {
    if (members.length === 0) return []
    const rows = await server.run(async (redis) => {
      const pipeline = redis.pipeline()
      for (const it of members) pipeline.hgetall(hashOf(it))
      return pipeline.exec()
    })
    return (rows ?? []).flatMap(([error, row]) => {
      if (error) throw error
      const { tenant, user, session, head, status, agent, title, created, updated } = row as Record<string, string>
      if (session === undefined) return []
      return [
        {
          key: { tenant: tenant!, user: user!, session },
          head: Number(head),
          status: status as SessionStatus,
          agent: agent!,
          title: title!,
          createdAt: Number(created),
          updatedAt: Number(updated),
        },
      ]
    })
  }

  /** Members of an index, newest first, in pages. */
  async function* members(index: string, before: number | undefined): AsyncGenerator<string[]> {
    for (let offset = 0; ; offset += PAGE) {
      const page = await server.run((redis) =>
        redis.zrange(
          index,
          before === undefined ? '+inf' : `(${before}`,
          '-inf',
          'BYSCORE',
          'REV',
          'LIMIT',
          offset,
          PAGE,
        ),
      )
      if (page.length > 0) yield page
      if (page.length < PAGE) return
    }
  }

  async function list({ tenant, user, status, before, dueBy, limit = 100 }: SessionQuery): Promise<SessionSummary[]> {
    const matches = (it: SessionSummary) =>
      (tenant === undefined || it.key.tenant === tenant) &&
      (user === undefined || it.key.user === user) &&
      (status === undefined || (status === 'open' ? it.status !== 'idle' : it.status === status)) &&
      (before === undefined || it.updatedAt < before)
    if (dueBy !== undefined) {
      const due = await server.run((redis) => redis.zrange(keyOf('deadlines'), '-inf', String(dueBy), 'BYSCORE'))
      return (await summaries(due))
        .filter(matches)
        .toSorted((a, b) => b.updatedAt - a.updatedAt)
        .slice(0, limit)
    }
    const open = status !== undefined && status !== 'idle' && (tenant === undefined || user === undefined)
    const found: SessionSummary[] = []
    for await (const page of members(open ? keyOf('open') : indexOf(tenant, user), before)) {
      for (const it of (await summaries(page)).filter(matches)) {
        // A page also holds all rows that share its last row's millisecond: `before` could not name the rest.
        if (found.length >= limit && found.at(-1)!.updatedAt !== it.updatedAt) return found
        found.push(it)
      }
    }
    return found
  }

  const read: Journal['read'] = async (key, afterSeq, limit = 500) => {
    const member = memberOf(key)
    const [head, entries] = await server.run(async (redis) => {
      const answers = await redis
        .multi()
        .hget(hashOf(member), 'head')
        .xrange(keyOf('events', member), `${Math.max(0, afterSeq) + 1}-0`, '+', 'COUNT', limit)
        .exec()
      return answers!.map(([error, answer]) => {
        if (error) throw error
        return answer
      }) as [string | null, [id: string, fields: string[]][]]
    })
    if (entries.length !== Math.max(0, Math.min(limit, Number(head ?? 0) - afterSeq)))
      throw corrupt(key, `has a gap after event ${afterSeq}`)
    return entries.map(([id, [, text]], index): Event => {
      const seq = afterSeq + 1 + index
      const cut = text!.indexOf(' ')
      const body = text!.slice(cut + 1)
      if (id !== `${seq}-0`) throw corrupt(key, `has a gap before event ${id}`)
      if (Number(text!.slice(0, cut)) !== crc32(body, crc32(member)))
        throw corrupt(key, `: event ${seq} has a wrong checksum`)
      return JSON.parse(body) as Event
    })
  }

  const head: Journal['head'] = async (key) => {
    const member = memberOf(key)
    return Number((await server.run((redis) => redis.hget(hashOf(member), 'head'))) ?? 0)
  }

  return {
    ...redisLife(server, { read, summaries }),

    async append(key, expectedSeq, events, { status, agent, title, wakeAt, audit = [] }) {
      const member = memberOf(key)
      assertDense(expectedSeq, events)
      assertAudit(events, audit)
      const bodies = events.map((it) => JSON.stringify(it))
      const { tenant, user, session } = key
      const stored = server.run((redis) =>
        redis.oxbowAppend(
          hashOf(member),
          keyOf('events', member),
          keyOf('operation', randomUUID()),
          indexOf(),
          indexOf(tenant, user),
          keyOf('open'),
          keyOf('deadlines'),
          keyOf('audit'),
          keyOf('audit', 'last'),
          keyOf('audited', member),
          member,
          expectedSeq,
          bodies.length,
          // The checksum goes before the body.
          ...bodies.map((it) => `${crc32(it, crc32(member))} ${it}`),
          status,
          agent,
          title.toWellFormed(),
          events[0]!.at,
          events.at(-1)!.at,
          wakeAt ?? '',
          tenant,
          user,
          session,
          bus.channel,
          bus.payload(topicOf(member), ''),
          ...audit.flatMap((it) => [it.seq, JSON.stringify(it)]),
        ),
      )
      underWay.add(stored)
      try {
        const [ok, head] = await stored
        return ok === 1 ? { ok: true } : { ok: false, head: Number(head) }
      } finally {
        underWay.delete(stored)
      }
    },

    read,
    head,

    async list(query) {
      server.assertOpen()
      return list(query)
    },

    async audit({ tenant, user, session, tool, status, from, to, after = 0, limit = 100 }) {
      server.assertOpen()
      const asked = (it: AuditRecord) =>
        (tenant === undefined || it.key.tenant === tenant) &&
        (user === undefined || it.principal.user === user) &&
        (session === undefined || it.key.session === session) &&
        (tool === undefined || it.tool === tool) &&
        (status === undefined || it.status === status) &&
        (from === undefined || it.at >= from) &&
        (to === undefined || it.at < to)
      const records: AuditRecord[] = []
      for (let cursor = after; ; ) {
        const entries = await server.run((redis) => redis.xrange(keyOf('audit'), `${cursor + 1}-0`, '+', 'COUNT', PAGE))
        for (const [id, [, text]] of entries) {
          if (records.length >= limit) return { records, cursor }
          cursor = Number(id.split('-')[0])
          const record = JSON.parse(text!) as AuditRecord
          if (asked(record)) records.push(record)
        }
        if (entries.length < PAGE) return { records, cursor }
      }
    },

    async getSnapshot(key) {
      const member = memberOf(key)
      const { seq, version, sum, data } = await server.run((redis) => redis.hgetall(keyOf('snapshot', member)))
      // A cache: a damaged one is none.
      if (data === undefined || Number(sum) !== crc32(data)) return undefined
      return { seq: Number(seq), version: Number(version), data }
    },

    async putSnapshot(key, { seq, version, data }) {
      const member = memberOf(key)
      await server.run((redis) =>
        redis.oxbowPutSnapshot(keyOf('snapshot', member), keyOf('erased', member), seq, version, crc32(data), data),
      )
    },

    watch(key, wake) {
      return bus.subscribeToOthers(topicOf(memberOf(key)), wake, wake)
    },

    idle: () => Promise.allSettled(underWay),
  }
}
