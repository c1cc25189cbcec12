// A worker that is alive and does nothing: its process is stopped in the middle of a model call.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { sqlite } from '@oxbow/backends'
import { openaiChat } from '@oxbow/models'
import { scriptedModel } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'
import { ofType } from '../core.fixture.ts'
import { agent, createEngine, type OxbowError } from '../index.ts'

test.skipIf(process.platform === 'win32')(
  'the turn of a stopped process is resumed elsewhere, callers learn its holder, and the process writes nothing more',
  { timeout: 40_000 },
  async () => {
    let asked = 0
    let answerFirst = () => {}
    const firstMayAnswer = new Promise<void>((resolve) => {
      answerFirst = resolve
    })
    const firstIsAsked = Promise.withResolvers<void>()
    const server = await scriptedModel({
      scripts: {
        async helper() {
          asked += 1
          if (asked > 1) return { text: 'from the second process' }
          firstIsAsked.resolve()
          await firstMayAnswer
          return { text: 'from the first process' }
        },
      },
    })
    const directory = mkdtempSync(join(tmpdir(), 'oxbow-lease-'))
    const path = join(directory, 'oxbow.db')
    const fixture = fileURLToPath(new URL('./lease.fixture.ts', import.meta.url))
    const first = spawn(process.execPath, [...process.execArgv, '-C', 'oxbow-source', fixture, path, server.url])
    first.stderr.pipe(process.stderr)
    const exited = once(first, 'exit')
    const printed = text(first.stdout)
    const backend = sqlite({ path })
    const errors: unknown[] = []
    const model = openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url })
    const engine = createEngine({
      backend,
      agents: [agent({ name: 'helper', model, instructions: 'x' })],
      onError: (error) => errors.push(error),
    })
    onTestFinished(async () => {
      first.kill('SIGKILL')
      await engine.stop(0)
      await backend.close()
      await server.close()
      rmSync(directory, { recursive: true })
    })

    await firstIsAsked.promise
    const session = engine.session({ user: 'ada', session: 's' })
    first.kill('SIGSTOP')
    const result = await session.wait('t')
    expect(result).toMatchObject({ status: 'finished', text: 'from the second process' })
    expect(engine.counts.takeovers).toBe(1)
    expect(errors.filter((it) => (it as OxbowError).code === 'turn_held')).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(
          /^Turn t is held by process \d+ on .* no sign of life for \d+ ms\. It is resumed/,
        ),
        details: expect.objectContaining({ pid: first.pid }),
      }),
    ])
    answerFirst()
    first.kill('SIGCONT')
    await exited
    // It learns from the journal how its turn ended.
    expect(await printed).toBe('ended with from the second process')
    const events = await session.events()
    expect(ofType(events, 'turn.claimed').map(({ epoch }) => epoch)).toEqual([1, 2])
    expect(ofType(events, 'model.finished')).toHaveLength(1)
    expect(ofType(events, 'turn.finished')).toHaveLength(1)
  },
)
