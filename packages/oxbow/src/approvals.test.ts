import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqlite } from '@oxbow/backends'
import { describe, expect, test } from 'vitest'
import { place, scripted, terminal } from './cli.fixture.ts'

const saves = (text: string) => ({ calls: [{ name: 'save_note', arguments: { text } }] })
const asking = { OXBOW_AGENT_ASK: 'save_note' }

async function setting(...texts: string[]) {
  const { server, env } = await scripted({
    scripts: { '*': [...texts.flatMap((it) => [saves(it), { text: `answer to ${it}` }]), { text: 'end' }] },
  })
  return { server, env: { ...env, ...asking } }
}

const results = (server: Awaited<ReturnType<typeof setting>>['server']): string[] =>
  server.requests
    .at(-1)!
    .messages.filter((it) => it.role === 'tool')
    .map((it) => String(it.content))

describe('oxbow run', () => {
  test('exits with 5 when the turn waits for an approval, and names it', async () => {
    const { env } = await setting('milk')
    const { code, stdout, stderr } = await place().run(['run', '-p', 'Go.', '--session', 's1'], { env })
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toMatch(/^[\w-]{60,}: save_note {"text":"milk"}/m)
    expect(stderr).toContain('Decide with: oxbow chat --session s1')
  })

  test('reports the ids that POST /api/approvals/{id} accepts', async () => {
    const { env } = await setting('milk')
    const at = place()
    const { stdout } = await at.run(['run', '-p', 'Go.', '--session', 's1', '--json'], { env })
    const { approvals } = JSON.parse(stdout)
    const piped = await at.run(['chat', '--session', 's1'], { env, input: '' })
    expect(piped.stdout).toContain(approvals[0].id)
    const serve = at.start(['serve', '--port', '0'], { env: { ...env, OXBOW_LOG_FORMAT: 'json' }, input: null })
    await serve.shows(/"url":"[^"]+"/)
    const [, url] = /"url":"([^"]+)"/.exec(serve.output())!
    const answer = await fetch(`${url}/api/approvals/${approvals[0].id}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ verdict: 'approved', userId: 'default' }),
    })
    expect([answer.status, ((await answer.json()) as { status: string }).status]).toEqual([200, 'approved'])
    serve.inner('SIGTERM')
    await serve.ended
  })

  test('a rule that can never match is a configuration error', async () => {
    const { code, stderr } = await place().run(['run', '-p', 'Go.'], { env: { OXBOW_AGENT_ASK: 'no_such_tool' } })
    expect(code).toBe(2)
    expect(stderr).toContain('no_such_tool')
  })
})

describe('oxbow approvals', () => {
  test('lists pending approvals and decides on them without a terminal; the turn resumes and finishes', {
    timeout: 120_000,
  }, async () => {
    const { env, server } = await setting('milk', 'eggs')
    const at = place()
    await at.run(['run', '-p', 'Go.', '--session', 's1'], { env })
    const { stdout } = await at.run(['approvals', 'list', '--json'], { env })
    const { id, ...shown } = JSON.parse(stdout)
    expect(shown).toMatchObject({ session: 's1', tool: 'save_note', arguments: { text: 'milk' } })
    expect((await at.run(['approvals', 'list'], { env })).stdout).toContain(id)
    const other = await at.run(['approvals', 'approve', id, '--user', 'ann'], { env })
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('Only default')])
    expect(await at.run(['approvals', 'approve', id], { env })).toEqual({
      code: 0,
      stdout: 'answer to milk\n',
      stderr: '',
    })
    expect((await at.run(['approvals', 'list'], { env })).stdout).toBe('No approvals are pending.\n')
    const again = await at.run(['approvals', 'deny', id], { env })
    expect(again.code).toBe(1)

    const second = JSON.parse((await at.run(['run', '-p', 'More.', '--session', 's1', '--json'], { env })).stdout)
    const denied = await at.run(['approvals', 'deny', second.approvals[0].id, '--reason', 'no eggs'], { env })
    expect([denied.code, denied.stdout]).toEqual([0, 'answer to eggs\n'])
    expect(results(server).at(-1)).toContain('no eggs')
    const nothing = await at.run(['approvals', 'approve', 'approval_x'], { env })
    expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringContaining('oxbow approvals list')])
  })
})

describe('oxbow rules', () => {
  test('lists remembered rules and removes them', { timeout: 120_000 }, async () => {
    const { env } = await setting('milk')
    const at = place()
    const { stdout } = await at.run(['run', '-p', 'Go.', '--session', 's1', '--json'], { env })
    const store = sqlite({ path: join(at.directory, '.oxbow/oxbow.db') })
    await store.files.put(
      { tenant: 'default', user: 'default', session: '*rules' },
      'rules.json',
      Buffer.from(JSON.stringify([{ rule: 'save_note', author: 'default' }])),
    )
    await store.close()
    expect(JSON.parse(stdout).status).toBe('paused')
    const [listed] = (await at.run(['rules', 'list', '--json'], { env })).stdout.trim().split('\n')
    const { id } = JSON.parse(listed!)
    expect((await at.run(['rules', 'list'], { env })).stdout).toBe(`${id}  save_note  (user, accepted by default)\n`)
    expect((await at.run(['rules', 'remove', id], { env })).stdout).toBe('Removed: save_note (user)\n')
    const again = await at.run(['rules', 'remove', id], { env })
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('oxbow rules list')])
  })
})

describe('oxbow chat without a terminal', () => {
  test('decides nothing: it reports pending approvals and exits with 5', async () => {
    const { env, server } = await setting('milk')
    const at = place()
    const { code, stdout, stderr } = await at.run(['chat', '--session', 's1'], { env, input: 'Go.\ny\nAnd more.\n' })
    expect(code).toBe(5)
    expect(stdout).toContain('text: "milk"')
    expect(stderr).toContain('oxbow chat --session s1')
    expect(server.requests).toHaveLength(1)
    expect((await at.run(['sessions', 'list'], { env })).stdout).toMatch(/^s1 +waiting/)
  })
})

// util-linux's `script` gives a process a terminal.
describe.skipIf(!existsSync('/usr/bin/script'))('oxbow chat on a terminal', () => {
  test('y approves, n denies with a reason, in the order of the questions', async () => {
    const { env, server } = await setting('milk', 'eggs')
    const chat = terminal(place(), ['chat', '--session', 's1'], env)
    await chat.shows('> ')
    chat.type('First.\r')
    await chat.shows('text: "milk"')
    await chat.shows('Approve?')
    chat.type('y\r')
    await chat.shows('answer to milk')
    await chat.shows('> ')
    chat.type('Second.\r')
    await chat.shows('text: "eggs"')
    chat.type('n\r')
    await chat.shows('Reason (optional): ')
    chat.type('no eggs\r')
    await chat.shows('answer to eggs')
    await chat.shows('> ')
    chat.type('\u0003')
    await chat.closed
    expect(results(server)).toEqual([expect.not.stringContaining('Refused'), 'Refused by default: no eggs'])
  })

  test('a question is repeated after a restart; e edits the arguments, r reports when no rule can help', async () => {
    const { env, server } = await setting('milk', 'eggs', 'tea')
    const at = place()
    const first = terminal(at, ['chat', '--session', 's1'], env)
    await first.shows('> ')
    first.type('First.\r')
    await first.shows('Approve?')
    first.type('\u0003')
    await first.closed
    const second = terminal(at, ['chat', '--session', 's1'], env)
    await second.shows('text: "milk"')
    await second.shows('Approve?')
    second.type('e\r')
    await second.shows('Arguments: {"text":"milk"}')
    second.type(`${'\b'.repeat(15)}{"txt":1}\r`)
    await second.shows('do not fit save_note')
    await second.shows('Approve?')
    second.type('e\r')
    await second.shows('Arguments: {"text":"milk"}')
    // The line is prefilled; its end is edited.
    second.type(`${'\b'.repeat(6)}oat milk"}\r`)
    await second.shows('(approved by default, with other arguments: {"text":"oat milk"})')
    await second.shows('answer to milk')
    await second.shows('> ')
    second.type('Second.\r')
    await second.shows('text: "eggs"')
    second.type('r\r')
    await second.shows('No rule can allow it in the future: ask:save_note takes precedence.')
    second.type('y\r')
    await second.shows('answer to eggs')
    await second.shows('> ')
    second.type('\u0003')
    await second.closed
    const listed = readFileSync(join(at.directory, '.oxbow/oxbow.db')).includes('oat milk')
    expect(listed).toBe(true)
    expect(results(server)).toHaveLength(2)
  })
})
