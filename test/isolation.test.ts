// One agent, many users at once: everything that a session shows, stores or sends carries its own mark and no other.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from '@oxbow/backends'
import { agent, createEngine, type SessionItem, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'

const USERS = 50
const SESSIONS = 200
const TURNS = 3

const MARK = /mark-\d+-\d+/g
const marksIn = (value: unknown): string[] => [...new Set(JSON.stringify(value).match(MARK) ?? [])]

test('200 sessions of 50 users at once, with tools, fragments, artifacts and interrupts: nothing crosses', {
  timeout: 120_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-isolation-'))
  const server = await scriptedModel({
    scripts: {
      '*': ({ messages }) => {
        const question = String(messages.findLast((it) => it.role === 'user')?.content)
        const mark = question.match(MARK)![0]
        if (messages.at(-1)?.role !== 'tool')
          return {
            thinking: `thinking of ${mark}`,
            calls: [
              { name: 'whoami', arguments: { mark } },
              { name: 'long', arguments: { mark } },
            ],
          }
        const text = Array.from({ length: 20 }, () => mark).join(' ')
        return question.includes('interrupt me') ? { text, silentAfterChunks: 10 } : { text }
      },
    },
  })
  const backend = sqlite({ path: join(directory, 'oxbow.db') })
  const who = agent({
    name: 'who',
    model: openaiChat({ provider: 'test', model: 'who', baseUrl: server.url }),
    instructions: 'Name the caller.',
    limits: { maxResultLength: 500 },
    tools: [
      tool({
        name: 'whoami',
        description: 'Names the caller.',
        effects: ['read'],
        input: { type: 'object', properties: { mark: { type: 'string' } } },
        async run({ mark }, { principal, session, progress }) {
          progress(`looking for ${String(mark)}`)
          await new Promise(setImmediate)
          return `${principal.user}/${session.user}/${session.session} ${String(mark)}`
        },
      }),
      tool({
        name: 'long',
        description: 'A long result.',
        effects: ['read'],
        input: { type: 'object', properties: { mark: { type: 'string' } } },
        run: ({ mark }) => `${String(mark)} `.repeat(200),
      }),
    ],
  })
  const errors: unknown[] = []
  const engine = createEngine({ backend, agents: [who], onError: (error) => errors.push(error), maxIdleSessions: 60 })
  await engine.start()
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await server.close()
    rmSync(directory, { recursive: true })
  })

  const problems: string[] = []
  const one = async (n: number): Promise<void> => {
    const user = `user-${n % USERS}`
    // All users have sessions with the same names.
    const session = engine.session({ user, session: `s${Math.floor(n / USERS)}` })
    for (let turn = 0; turn < TURNS; turn++) {
      const mark = `mark-${n}-${turn}`
      const interrupted = (n + turn) % 7 === 0
      const items: SessionItem[] = []
      const stream = session.stream(`${mark} ${interrupted ? 'interrupt me' : ''}`)
      let asked = false
      for await (const item of stream) {
        items.push(item)
        if (interrupted && !asked && item.type === 'text.delta') {
          asked = true
          await session.interrupt({ turnId: stream.turnId })
        }
      }
      const result = await stream.result
      const strangers = marksIn(items).filter((it) => it !== mark)
      if (strangers.length > 0) problems.push(`${mark} saw ${strangers.join()}`)
      if (result.status !== (interrupted ? 'cancelled' : 'finished')) problems.push(`${mark} ended ${result.status}`)
      const answers = items.flatMap((it) => (it.type === 'call.finished' ? [JSON.stringify(it.content)] : []))
      if (!answers.some((it) => it.includes(`${user}/${user}/${session.key.session} ${mark}`)))
        problems.push(`${mark} was not told who asked`)
    }
    const { messages } = await session.state()
    const own = Array.from({ length: TURNS }, (_, turn) => `mark-${n}-${turn}`)
    if (marksIn(messages).some((it) => !own.includes(it))) problems.push(`the history of ${n} has strangers`)
    const files = await backend.files.list(session.key, '')
    if (files.length !== TURNS) problems.push(`session ${n} has ${files.length} artifacts`)
    for (const { path } of files) {
      const text = Buffer.from((await backend.files.get(session.key, path))!.data).toString()
      if (marksIn(text).some((it) => !own.includes(it))) problems.push(`an artifact of ${n} has strangers`)
    }
  }
  await Promise.all(Array.from({ length: SESSIONS }, (_, n) => one(n)))

  expect(problems).toEqual([])
  expect(errors).toEqual([])
  // Requests to the model never mix sessions either.
  for (const request of server.requests) {
    const sessions = new Set(marksIn(request.body).map((it) => it.split('-')[1]))
    expect(sessions.size).toBe(1)
  }
  expect(server.requests.length).toBe(SESSIONS * TURNS * 2)
})
