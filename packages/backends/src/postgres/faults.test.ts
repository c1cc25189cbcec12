// What a database, its network and its administrators do to a replica.

import { randomUUID } from 'node:crypto'
import type { Backend } from '@oxbow/core'
import { conformanceEvent, eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { afterEach, describe, expect, test } from 'vitest'
import { proxyTo, type TcpProxy } from '../network.fixture.ts'
import { postgres } from './index.ts'
import { drop, missing, onServer, open, urlOf } from './open.fixture.ts'

const skip = missing !== undefined
const cleanUp: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const it of cleanUp.splice(0).reverse()) await it()
})

async function opened(): Promise<{ directory: string; backend: Backend; url: string }> {
  const directory = randomUUID()
  cleanUp.push(() => drop(directory))
  const backend = await open(directory)
  cleanUp.push(() => backend.close())
  return { directory, backend, url: urlOf(directory) }
}

const own = (session: string) => ({ ...someKey, session })

async function proxy(url: string): Promise<TcpProxy> {
  const it = await proxyTo(url)
  cleanUp.push(async () => it.close())
  return it
}

describe.skipIf(skip)('B10: an append on PostgreSQL', () => {
  test('whose answer was lost is stored once, and told as stored', async () => {
    const { backend, url } = await opened()
    const between = await proxy(url)
    const far = postgres({ url: between.url })
    cleanUp.push(() => far.close())
    await far.check()
    await far.journal.append(own('a'), 0, eventsAfter(0, 1), summary)
    const lost = between.loseAnswers()
    const appending = far.journal.append(own('a'), 1, eventsAfter(1, 2), summary)
    await lost
    between.cut()
    expect(await appending).toEqual({ ok: true })
    expect(await backend.journal.read(own('a'), 0)).toEqual(eventsAfter(0, 3))
  })

  test('whose answer was lost while another writer was first is a conflict', async () => {
    const { backend, url } = await opened()
    const between = await proxy(url)
    const far = postgres({ url: between.url })
    cleanUp.push(() => far.close())
    await far.check()
    await backend.journal.append(own('a'), 0, eventsAfter(0, 1), summary)
    const lost = between.loseAnswers()
    const appending = far.journal.append(own('a'), 0, [conformanceEvent(1, 'mine')], summary)
    await lost
    between.cut()
    expect(await appending).toEqual({ ok: false, head: 1 })
    expect(await backend.journal.read(own('a'), 0)).toEqual(eventsAfter(0, 1))
  })

  test('goes through when every connection is terminated again and again', async () => {
    const { backend, url } = await opened()
    const kill = () =>
      onServer((client) =>
        client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
          new URL(url).pathname.slice(1),
        ]),
      )
    const sessions = Array.from({ length: 8 }, (_, n) => own(`s${n}`))
    let done = false
    const killing = (async () => {
      while (!done) await kill()
    })()
    await Promise.all(
      sessions.map(async (key) => {
        for (let head = 0; head < 20; head += 1) {
          const append = () => backend.journal.append(key, head, [conformanceEvent(head + 1)], summary)
          for (;;) {
            const answer = await append().catch((error: { retryable?: boolean }) => {
              expect(error.retryable).toBe(true)
              return undefined
            })
            if (answer?.ok) break
            // One that was rejected may have been stored all the same: the journal says so.
            if (answer?.ok === false) {
              expect(answer.head).toBe(head + 1)
              break
            }
          }
        }
      }),
    )
    done = true
    await killing
    for (const key of sessions) expect(await backend.journal.read(key, 0)).toEqual(eventsAfter(0, 20))
  })

  test('that finds no server says so without the password, and can be tried again', async () => {
    const backend = postgres({ url: 'postgres://ann:hunter2@127.0.0.1:1/nowhere' })
    cleanUp.push(() => backend.close())
    const error = await backend.journal.append(someKey, 0, eventsAfter(0, 1), summary).catch((it: unknown) => it)
    expect(error).toMatchObject({ code: 'storage_busy', retryable: true })
    expect(JSON.stringify([error, String(error), (error as Error).cause ?? '', backend.name])).not.toContain('hunter2')
    expect(String(error)).toContain('127.0.0.1:1/nowhere')
  })
})

describe.skipIf(skip)('B10: the tables', () => {
  test('are made once by replicas that start together, and a later start writes nothing', async () => {
    const { directory, url } = await opened()
    await drop(directory)
    const name = new URL(url).pathname.slice(1)
    await onServer((client) => client.query(`CREATE DATABASE ${name}`))
    const replicas = Array.from({ length: 4 }, () => postgres({ url }))
    cleanUp.push(() => Promise.all(replicas.map((it) => it.close())))
    await Promise.all(replicas.map((it) => it.check()))
    await Promise.all(replicas.map((it) => it.queue.depth()))
    await onServer(
      (client) =>
        client.query(`
          CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no DDL'; END $$;
          CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()`),
      url,
    )
    const late = postgres({ url })
    cleanUp.push(() => late.close())
    await late.check()
    await late.queue.enqueue({ key: someKey, reason: 'input' })
    await late.journal.append(someKey, 0, eventsAfter(0, 1), summary)
    expect(await replicas[0]!.journal.head(someKey)).toBe(1)
  })

  test('of a newer version are refused, unless it lets this one work beside it', async () => {
    const { url } = await opened()
    const set = (version: number, oldest: number) =>
      onServer((client) => client.query(`UPDATE oxbow.meta SET version = ${version}, oldest_reader = ${oldest}`), url)
    await set(99, 99)
    const refused = postgres({ url })
    cleanUp.push(() => refused.close())
    await expect(refused.journal.head(someKey)).rejects.toMatchObject({ code: 'storage_newer' })
    await set(2, 1)
    const beside = postgres({ url })
    cleanUp.push(() => beside.close())
    expect(await beside.journal.head(someKey)).toBe(0)
  })

  test('are read through an index by every query', async () => {
    const { backend, url } = await opened()
    const statements = await onServer(async (client) => {
      await client.query(`
        INSERT INTO oxbow.sessions (tenant, usr, session, head, status, agent, title, created_at, updated_at, wake_at)
        SELECT 't' || n % 50, 'u' || n % 500, 's' || n, 3, CASE WHEN n % 100 = 0 THEN 'running' ELSE 'idle' END, 'a', 't', n, n,
          CASE WHEN n % 100 = 0 THEN n END FROM generate_series(1, 20000) n;
        INSERT INTO oxbow.events SELECT id, seq, 0, '{}' FROM oxbow.sessions, generate_series(1, 3) seq;
        INSERT INTO oxbow.files SELECT tenant, usr, session, 'p', 1, 0, '' FROM oxbow.sessions;
        INSERT INTO oxbow.workers SELECT 'w' || n, 'h', 1, 'a', now(), now() FROM generate_series(1, 5000) n;
        INSERT INTO oxbow.locks SELECT 'l' || n, 1, now() FROM generate_series(1, 5000) n;
        INSERT INTO oxbow.snapshots SELECT id, 1, 1, 0, '' FROM oxbow.sessions;
        INSERT INTO oxbow.audit (session, seq, at, tenant, usr, name, tool, sum, body)
          SELECT id, 1, 1, tenant, usr, session, 'tool', 0, '{}' FROM oxbow.sessions;
        ANALYZE`)
      const key = `tenant = 't1' AND usr = 'u1' AND session = 's1'`
      return [
        `SELECT e.body FROM oxbow.sessions s LEFT JOIN oxbow.events e ON e.session = s.id AND e.seq > 1 AND e.seq <= s.head WHERE ${key.replaceAll(/(\w+) =/g, 's.$1 =')} ORDER BY e.seq LIMIT 500`,
        `SELECT * FROM oxbow.sessions WHERE status <> 'idle' ORDER BY updated_at DESC FETCH FIRST 100 ROWS WITH TIES`,
        `SELECT * FROM oxbow.sessions WHERE status <> 'idle' AND status = 'running' ORDER BY updated_at DESC FETCH FIRST 100 ROWS WITH TIES`,
        `SELECT * FROM oxbow.sessions ORDER BY updated_at DESC FETCH FIRST 100 ROWS WITH TIES`,
        `SELECT * FROM oxbow.sessions WHERE tenant = 't1' AND usr = 'u1' ORDER BY updated_at DESC FETCH FIRST 100 ROWS WITH TIES`,
        `SELECT * FROM oxbow.sessions WHERE wake_at <= 100 ORDER BY updated_at DESC FETCH FIRST 100 ROWS WITH TIES`,
        `SELECT * FROM oxbow.audit WHERE id > 5 ORDER BY id LIMIT 100`,
        `SELECT * FROM oxbow.audit WHERE id > 5 AND tenant = 't1' AND usr = 'u1' ORDER BY id LIMIT 100`,
        `SELECT data FROM oxbow.files WHERE ${key} AND path = 'p'`,
        `SELECT path FROM oxbow.files WHERE ${key} AND path >= 'p' AND starts_with(path, 'p') ORDER BY path`,
        `SELECT n.data FROM oxbow.snapshots n JOIN oxbow.sessions s ON s.id = n.session WHERE ${key.replaceAll(/(\w+) =/g, 's.$1 =')}`,
        `SELECT * FROM oxbow.workers WHERE worker = 'w7'`,
        `SELECT * FROM oxbow.locks WHERE name = 'l7'`,
      ]
    }, url)
    for (const sql of statements) {
      const plan = await onServer(async (client) => (await client.query(`EXPLAIN ${sql}`)).rows, url)
      const text = plan.map((it: Record<string, string>) => it['QUERY PLAN']).join('\n')
      expect(text, `${sql}\n${text}`).not.toMatch(/Seq Scan/)
    }
    expect(await backend.journal.head({ tenant: 't1', user: 'u1', session: 's1' })).toBe(3)
  })

  test('that were damaged are found by a check of the store, and are not read', async () => {
    const { backend, url } = await opened()
    await backend.journal.append(own('good'), 0, eventsAfter(0, 3), summary)
    await backend.journal.append(own('changed'), 0, eventsAfter(0, 3), summary)
    await backend.journal.append(own('cut'), 0, eventsAfter(0, 3), summary)
    expect(await backend.verify()).toMatchObject({ sessions: 3, events: 9, problems: [] })
    await onServer(
      (client) =>
        client.query(`
          UPDATE oxbow.events e SET body = replace(body, 'event 2', 'event 7') FROM oxbow.sessions s
          WHERE s.id = e.session AND s.session = 'changed';
          DELETE FROM oxbow.events e USING oxbow.sessions s WHERE s.id = e.session AND s.session = 'cut' AND seq = 3`),
      url,
    )
    const { problems } = await backend.verify()
    expect(problems).toEqual([
      'session changed of ada: event 2 has a wrong checksum',
      'session cut of ada ends at event 2, but its head is 3',
    ])
    for (const it of ['changed', 'cut'])
      await expect(backend.journal.read(own(it), 0)).rejects.toMatchObject({ code: 'journal_corrupt' })
    expect(await backend.journal.read(own('good'), 0)).toEqual(eventsAfter(0, 3))
  })
})

describe.skipIf(skip)('B10: wake-ups', () => {
  test('arrive again after the listening connection was cut, and what was missed is reported', async () => {
    const { backend, url } = await opened()
    const between = await proxy(url)
    const far = postgres({ url: between.url })
    cleanUp.push(() => far.close())
    await far.check()
    let woken = 0
    cleanUp.push(async () => stop())
    const stop = far.journal.watch(own('a'), () => {
      woken += 1
    })
    await backend.journal.append(own('a'), 0, eventsAfter(0, 1), summary)
    await expect.poll(() => woken).toBe(1)
    between.cut()
    await backend.journal.append(own('a'), 1, eventsAfter(1, 1), summary)
    await expect.poll(() => woken, { timeout: 5_000 }).toBeGreaterThan(1)
    const before = woken
    await backend.journal.append(own('a'), 2, eventsAfter(2, 1), summary)
    await expect.poll(() => woken, { timeout: 5_000 }).toBeGreaterThan(before)
  })
})
