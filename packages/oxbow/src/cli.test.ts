import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { BIN, type Place, place, scripted } from './cli.fixture.ts'

describe('oxbow run', () => {
  test('answers without a key and prints only the answer', async () => {
    const { run } = place()
    const { code, stdout, stderr } = await run(['run', '-p', 'What is 17 * 23?'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('391')
  })

  test('--json prints one object, with the session to continue', async () => {
    const { run } = place()
    const first = await run(['run', '--json', '-p', '-', '--session', 's1'], { input: 'What is 2 + 2?' })
    expect(JSON.parse(first.stdout)).toMatchObject({ session: 's1', status: 'finished', reason: 'completed', steps: 2 })
  })

  test('the same turn id is not run twice', async () => {
    const { server, env } = await scripted({ scripts: { '*': [{ text: 'once' }] } })
    const { run } = place()
    const args = ['run', '-p', 'Go.', '--session', 's1', '--turn', 't1']
    expect((await run(args, { env })).stdout).toBe('once\n')
    expect((await run(args, { env })).stdout).toBe('once\n')
    expect(server.requests).toHaveLength(1)
  })

  test.each([
    ['the model refuses the key', { status: 401, body: { error: { message: 'no' } } }, 3],
    ['the provider is overloaded', { status: 503, body: {} }, 3],
  ])('exits with a distinct code when %s', async (_, reply, code) => {
    const { env } = await scripted({ scripts: { '*': [reply] } })
    const ended = await place().run(['run', '-p', 'Go.'], { env })
    expect(ended.code).toBe(code)
    expect(ended.stdout).toBe('')
    expect(ended.stderr).toMatch(/^oxbow: .+\n$/)
  })

  test.each([
    [['run'], /required option '-p/],
    [['run', '-p', '  '], /input is empty\. Pass text with -p/],
    [['run', '-p', 'x', '--fly'], /\(Run oxbow run --help for usage/],
    [['sessions', 'list', '--fly'], /\(Run oxbow sessions list --help for usage/],
    [['run', '-p', 'x', '--session', '../etc'], /session must be 1 to 64/],
    [['run', '-p', 'x', '--model', 'nonsense:x'], /Unknown provider "nonsense"/],
    [['run', '-p', 'x', '--model', 'openai:gpt-5'], /OPENAI_API_KEY/],
    [['fly'], /unknown command/],
    [['serve', '--port', 'x'], /server\.port/],
    [['serve', '--host', '0.0.0.0'], /no identity is configured/],
  ])('%j is refused with the reason and exit code 2', async (args, message) => {
    const { code, stderr, stdout } = await place().run(args)
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/ at .*\.ts:\d+/)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test('Ctrl-C interrupts the turn, keeps the partial answer, and exits with 130', async () => {
    const { server, env } = await scripted({ scripts: { '*': [{ text: 'one two three', silentAfterChunks: 2 }] } })
    const at = place()
    const command = at.start(['run', '-p', 'Go.', '--session', 's1'], { env })
    await (await server.nextRequest()).headers
    await until(async () => (await at.run(['sessions', 'list'])).stdout.includes('running'), { deadlineMs: 15_000 })
    // The launcher ignores SIGINT because a terminal sends it to the whole group, and so does this test.
    command.inner('SIGINT')
    expect((await command.ended).code).toBe(130)
    const { stdout } = await at.run(['sessions', 'export', 's1'])
    expect(stdout).toContain('"turn.cancelled"')
  })
})

describe('X2: kill -9 in the middle', () => {
  test('of a served turn: the next start resumes it, and the effect happens once', async () => {
    const held = gate()
    const { server, env } = await scripted({
      scripts: {
        '*': [
          { calls: [{ name: 'save_note', arguments: { text: 'only once' } }] },
          { text: 'never shown', hold: { atChunk: 1, gate: held } },
          { text: 'Saved it.' },
          { calls: [{ name: 'list_my_notes', arguments: {} }] },
          { text: 'listed' },
        ],
      },
    })
    const at = place()
    const first = at.start(['serve', '--port', '0'], { env, input: null })
    await first.shows(/listens on (http:\S+)/)
    const url = /listens on (http:\S+)/.exec(first.output())![1]!
    const ask = fetch(`${url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sessionId: 's1', message: 'Note: only once' }),
    }).catch(() => 'the connection broke')
    await held.reached
    first.inner('SIGKILL')
    expect(await ask).toBe('the connection broke')
    await first.ended

    const second = at.start(['serve', '--port', '0'], { env, input: null })
    await second.shows(/listens on (http:\S+)/)
    const again = /listens on (http:\S+)/.exec(second.output())![1]!
    const messages = async () =>
      (await (await fetch(`${again}/api/sessions/s1/messages?userId=default`)).text()).includes('Saved it.')
    await until(messages, { deadlineMs: 15_000 })
    second.child.kill('SIGTERM')
    expect((await second.ended).code).toBe(0)

    await at.run(['run', '-p', 'List them.', '--session', 's1'], { env })
    const results = server.requests.at(-1)!.messages.filter((it) => it.role === 'tool')
    expect(String(results.at(-1)?.content).match(/only once/g)).toHaveLength(1)
  })
})

test('kill -9 of the launcher ends its child process at once', async () => {
  const service = place().start(['serve', '--port', '0'], { input: null })
  await service.shows(/listens on (http:\S+)/)
  const url = /listens on (http:\S+)/.exec(service.output())![1]!
  service.child.kill('SIGKILL')
  // Its output ends when no process holds it, so the child is gone too.
  await service.ended
  await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed')
})

describe('oxbow sessions', () => {
  test('lists, shows and exports; unknown sessions are an error', async () => {
    const at = place()
    expect((await at.run(['sessions', 'list'])).stdout).toContain('No sessions yet')
    await at.run(['run', '-p', 'What is 2 + 2?', '--session', 's1'])
    expect((await at.run(['sessions', 'list'])).stdout).toMatch(/^s1 +idle .*T\d\d:\d\dZ .* What is 2 \+ 2\?\n$/)
    expect((await at.run(['sessions', 'show', 's1'])).stdout).toMatch(
      /> What is 2 \+ 2\?\n→ calculate [^\n]*\n← calculate 2/,
    )
    const exported = (await at.run(['sessions', 'export', 's1'])).stdout
      .trimEnd()
      .split('\n')
      .map((it) => JSON.parse(it))
    expect(exported.map((it: { seq: number }) => it.seq)).toEqual(exported.map((_, n) => n + 1))
    const unknown = await at.run(['sessions', 'show', 's2'])
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toContain('oxbow sessions list')
  })

  test('a damaged store is an error and is left unchanged', async () => {
    const at = place()
    const file = join(at.directory, 'broken.db')
    writeFileSync(file, 'this is not a database, though it is long enough to be read '.repeat(20))
    const { code, stderr } = await at.run(['sessions', 'list', '--store', file])
    expect(code).toBe(1)
    expect(stderr).toContain('broken.db')
    expect(readFileSync(file, 'utf8')).toContain('not a database')
  })
})

describe('a missing store', () => {
  test('is reported by read commands and not created', async () => {
    const at = place()
    const list = await at.run(['sessions', 'list', '--store', 'typo/oxbow.db'])
    expect(list).toMatchObject({ code: 0, stderr: '' })
    expect(list.stdout).toContain('no store at typo/oxbow.db')
    for (const command of ['show', 'export', 'release'])
      expect((await at.run(['sessions', command, 's1', '--store', 'typo/oxbow.db'])).stderr).toContain('Check --store')
    expect(existsSync(join(at.directory, 'typo'))).toBe(false)
  })
})

describe('oxbow chat', () => {
  test('of piped lines exits with 1 when a turn failed', async () => {
    const { env } = await scripted({ scripts: { '*': [{ status: 401, body: {} }] } })
    const { code, stdout } = await place().run(['chat'], { env, input: 'Hi\n' })
    expect(code).toBe(1)
    expect(stdout).toContain('failed:')
  })

  test.skipIf(!existsSync('/usr/bin/script'))(
    'on a terminal a named session shows its state, and / commands do not reach the model',
    async () => {
      const { server, env } = await scripted({ scripts: { '*': { always: { text: 'fine' } } } })
      const at = place()
      const terminal = async (session: string, ...typed: string[]): Promise<string> => {
        const child = spawn(
          '/usr/bin/script',
          ['-qfc', `${process.execPath} ${BIN} chat --session ${session} --user ann`, '/dev/null'],
          {
            cwd: at.directory,
            env: { PATH: process.env.PATH ?? '', HOME: at.directory, TERM: 'xterm', ...env },
          },
        )
        onTestFinished(() => void child.kill('SIGKILL'))
        let seen = ''
        child.stdout.on('data', (it: Buffer) => {
          seen += it.toString()
        })
        const closed = new Promise((resolve) => child.once('close', resolve))
        await until(() => seen.includes('> '), { deadlineMs: 15_000 })
        for (const line of typed) child.stdin.write(`${line}\r`)
        await closed
        return seen
      }
      const first = await terminal('s1', '/help', '/exit')
      expect(first).toContain('(a new session)')
      expect(first).toContain('resume a paused or parked turn')
      expect(first).toContain('Continue with: oxbow chat --session s1 --user ann')
      expect(server.requests).toHaveLength(0)
      await at.run(['run', '-p', 'Hi', '--session', 's1', '--user', 'ann'], { env })
      expect(await terminal('s1', '/exit')).toContain('(continues after 2 messages)')
    },
  )

  test('answers piped lines one after the other, and shows the calls', async () => {
    const { stdout, code } = await place().run(['chat'], { input: 'What is 2 + 2?\n\nWhat is 3 * 3?\n' })
    expect(code).toBe(0)
    expect(stdout).toMatch(/→ calculate [\s\S]*← calculate 2 ?\+ ?2 = 4[\s\S]*← calculate 3 ?\* ?3 = 9/)
  })

  // util-linux's `script` gives a process a terminal.
  test.skipIf(!existsSync('/usr/bin/script'))('on a terminal: Ctrl-C stops the turn, a second one quits', async () => {
    const { env } = await scripted({ scripts: { '*': [{ text: 'one two three', silentAfterChunks: 2 }] } })
    const { directory } = place()
    const child = spawn('/usr/bin/script', ['-qfc', `${process.execPath} ${BIN} chat`, '/dev/null'], {
      cwd: directory,
      env: { PATH: process.env.PATH ?? '', HOME: directory, TERM: 'xterm', ...env },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let seen = ''
    child.stdout.on('data', (it: Buffer) => {
      seen += it.toString()
    })
    const shows = (what: string) =>
      until(() => seen.includes(what), { deadlineMs: 15_000 }).catch(() => {
        throw new Error(`no ${what} in:\n${seen}`)
      })
    const closed = new Promise((resolve) => child.once('close', resolve))
    await shows('Ctrl-C: stop the turn')
    child.stdin.write('Count.\r')
    await shows('one two')
    child.stdin.write('\u0003')
    await shows('stopped by the user')
    child.stdin.write('\u0003')
    await closed
    expect(seen).toContain('Continue with: oxbow chat --session')
  })
})

describe('two services on one store', () => {
  test('an interrupt to one of them stops the turn that the other runs', async () => {
    const { server, env } = await scripted({ scripts: { '*': [{ text: 'one two three', silentAfterChunks: 2 }] } })
    const at = place()
    const start = async (): Promise<string> => {
      const service = at.start(['serve', '--port', '0'], { env, input: null })
      await service.shows(/listens on (http:\S+)/)
      return /listens on (http:\S+)/.exec(service.output())![1]!
    }
    const [one, other] = await Promise.all([start(), start()])
    const post = (url: string, body: object) =>
      fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    const stream = await post(`${one}/api/chat/stream`, {
      threadId: 's1',
      runId: 'r1',
      messages: [{ id: 'm1', role: 'user', content: 'Count.' }],
    })
    const request = await server.nextRequest()
    const interrupted = await post(`${other}/api/sessions/s1/interrupt`, {})
    expect(await interrupted.json()).toMatchObject({ turnId: 'r1' })
    await request.waitForAbort()
    const text = await stream.text()
    expect(text).toMatch(/"type":"RUN_ERROR"[^\n]*INTERRUPTED_ERROR[^\n]*\n*$/)
  })
})

describe('a parked turn', () => {
  const parked = async (at: Place): Promise<void> => {
    const { server, env } = await scripted({ scripts: { '*': { always: { text: 'x', silentAfterChunks: 0 } } } })
    // Each attempt dies in the middle of the model's answer.
    for (let n = 0; n < 5; n++) {
      const command = at.start(['run', '-p', 'Go.', '--session', 's1', '--turn', 't1'], { env })
      await server.nextRequest()
      command.inner('SIGKILL')
      await command.ended
    }
  }

  test('reports how to resume it, and resumes when released', { timeout: 60_000 }, async () => {
    const at = place()
    await parked(at)
    const { env } = await scripted({ scripts: { '*': { always: { text: 'at last' } } } })
    const sixth = await at.run(['run', '-p', 'Go.', '--session', 's1', '--turn', 't1'], { env })
    expect(sixth).toMatchObject({ code: 5, stdout: '' })
    expect(sixth.stderr).toContain('interrupted too often and is parked')
    expect(sixth.stderr).toContain('Resume it with: oxbow sessions release s1')
    expect(await at.run(['sessions', 'release', 's1'], { env })).toMatchObject({ code: 0, stdout: 'at last\n' })
    const again = await at.run(['sessions', 'release', 's1'], { env })
    expect(again.code).toBe(1)
    expect(again.stderr).toContain('paused manually or parked')
    expect((await at.run(['sessions', 'release', 'none'], { env })).stderr).toContain('oxbow sessions list')
  })

  test('is released with all others', { timeout: 60_000 }, async () => {
    const at = place()
    await parked(at)
    const { env } = await scripted({ scripts: { '*': { always: { text: 'at last' } } } })
    expect((await at.run(['run', '-p', 'Go.', '--session', 's1', '--turn', 't1'], { env })).code).toBe(5)
    const all = () => at.run(['sessions', 'release', '--all'], { env })
    expect(await all()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^s1 {2}\S+ {2}finished\n$/) })
    expect(await all()).toMatchObject({ code: 0, stdout: 'No turn is parked.\n' })
    const neither = await at.run(['sessions', 'release'], { env })
    expect(neither.stderr).toContain('Give the id of a session, or --all.')
  })
})

describe('oxbow run in scripts', () => {
  test('a turn id alone makes a command run once', async () => {
    const { server, env } = await scripted({ scripts: { '*': [{ text: 'once' }] } })
    const at = place()
    expect((await at.run(['run', '-p', 'Go.', '--turn', 't1'], { env })).stdout).toBe('once\n')
    expect((await at.run(['run', '-p', 'Go.', '--turn', 't1'], { env })).stdout).toBe('once\n')
    expect(server.requests).toHaveLength(1)
  })

  test('--json reports the session and turn of a failure', async () => {
    const { env } = await scripted({ scripts: { '*': [{ status: 401, body: {} }] } })
    const { code, stdout } = await place().run(['run', '--json', '-p', 'Go.', '--session', 's1', '--turn', 't1'], {
      env,
    })
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({
      session: 's1',
      status: 'failed',
      error: { code: 'auth', turnId: 't1', message: expect.any(String) },
    })
  })

  test('an answer that was cut off is printed with a warning', async () => {
    const { env } = await scripted({ scripts: { '*': [{ text: 'half an', finishReason: 'length' }] } })
    const { code, stdout, stderr } = await place().run(['run', '-p', 'Go.'], { env })
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'half an\n' })
    expect(stderr).toMatch(/ended early: the answer reached the length limit/)
  })

  test('a turn that ends early without an answer is a failure', async () => {
    const { env } = await scripted({ scripts: { '*': { always: { text: '', finishReason: 'content_filter' } } } })
    const { code, stdout, stderr } = await place().run(['run', '-p', 'Go.'], { env })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/content filter/)
  })

  test('SIGTERM ends it as SIGTERM does, and leaves the turn open', async () => {
    const { server, env } = await scripted({ scripts: { '*': [{ text: 'x', silentAfterChunks: 0 }] } })
    const at = place()
    const command = at.start(['run', '-p', 'Go.', '--session', 's1'], { env })
    await server.nextRequest()
    command.child.kill('SIGTERM')
    await command.ended
    expect(command.child.signalCode).toBe('SIGTERM')
    expect((await at.run(['sessions', 'list'])).stdout).toMatch(/^s1 +running/)
  })

  test('a port that is not a number is reported as given', async () => {
    expect((await place().run(['serve', '--port', 'abc'])).stderr).toContain('got "abc"')
  })
})

describe('oxbow keys', () => {
  test('a created key authenticates its user at a service with its record', async () => {
    const at = place()
    const scopes = ['--data-scope', 'department', '--data-scope', 'custom:103,104']
    const { stdout, stderr, code } = await at.run([
      'keys',
      'create',
      '--user',
      'ann',
      '--permission',
      'biz:*',
      ...scopes,
    ])
    expect(code).toBe(0)
    const key = stdout.trim()
    expect(stderr).not.toContain(key)
    // The whole of standard error is valid content for the key file.
    writeFileSync(join(at.directory, 'keys.toml'), stderr)
    writeFileSync(join(at.directory, 'oxbow.toml'), '[identity]\nmode = "api-keys"\nkeysFile = "keys.toml"\n')
    const service = at.start(['serve', '--port', '0'], { input: null })
    await service.shows(/listens on (http:\S+)/)
    await service.shows("-H 'authorization: Bearer KEY'")
    const url = /listens on (http:\S+)/.exec(service.output())![1]!
    const ask = (headers: Record<string, string>) =>
      fetch(`${url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ sessionId: 's1', message: 'What is 2 + 2?' }),
      })
    expect((await ask({})).status).toBe(401)
    expect((await ask({ authorization: `Bearer ${key}` })).status).toBe(200)
    expect((await at.run(['sessions', 'list', '--user', 'ann'])).stdout).toContain('s1')
  })

  test.each([[[]], [['--user', '../x']], [['--bogus', '--user', 'ann']], [['--user', 'ann', '--expires', 'soon']]])(
    'P8: after %j what standard error holds is still valid content for the key file',
    async (args) => {
      const { stdout, stderr, code } = await place().run(['keys', 'create', ...args])
      expect(code).not.toBe(0)
      expect(stdout).toBe('')
      expect(stderr).toMatch(/^(# .+\n)+$/)
    },
  )

  test('B3: a key limits the rows that its user may see; an unknown scope is refused', async () => {
    const at = place()
    const create = (scope: string) => at.run(['keys', 'create', '--user', 'ann', '--data-scope', scope])
    expect((await create('custom:103, 104')).stderr).toContain(
      'dataScope = [{ "type" = "custom", "departments" = ["103", "104"] }]',
    )
    const wrong = await create('everything')
    expect([wrong.code, wrong.stdout]).toEqual([2, ''])
    expect(wrong.stderr).toContain('all, own, department, department_and_below')
  })
})
