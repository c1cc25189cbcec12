import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { place } from '../cli.fixture.ts'

const CORE = import.meta.resolve('@oxbow/core')

/** Tools in a module of the user. */
const MODULE = `
import { appendFileSync } from 'node:fs'
import { agent, needsApproval, tool } from ${JSON.stringify(CORE)}
const define = (name, more) => tool({ name, description: 'Is tested.', effects: ['read'], input: {}, run: () => 'ok', ...more })
const input = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }
export const add = define('add', {
  input,
  run: ({ a }) => ({ total: a + 1, of: [a] }),
  tests: [
    { name: 'adds', input: { a: 1 }, expect: { of: [1], total: 2 } },
    { name: 'is off by one', input: { a: 1 }, expect: { of: [1], total: 1 } },
    { name: 'misses its input', input: {}, expect: {} },
  ],
})
export const broken = define('broken', {
  run: () => { throw new TypeError('no such host 10.0.0.1') },
  tests: [{ name: 'throws', input: {}, expect: 'ok' }],
})
export const slow = define('slow', {
  timeoutMs: 50,
  run: () => new Promise(() => setInterval(() => {}, 1_000)),
  tests: [{ name: 'ends', input: {}, expect: 'ok' }],
})
const pay = define('pay', {
  effects: ['write'],
  approval: 'always',
  permission: 'pay:all',
  run: () => { appendFileSync('paid', 'x'); return 'paid' },
  tests: [{ name: 'pays', input: {}, expect: 'paid' }],
})
const wrong = define('wrong', { output: { type: 'number' }, tests: [{ name: 'breaks its schema', input: {}, expect: 'ok' }] })
const flaky = define('flaky', {
  retries: 2,
  run: () => { if (++tries === 1) throw new Error('first'); return 'ok' },
  tests: [{ name: 'fails once', input: {}, expect: 'ok' }],
})
let tries = 0
export const more = [pay, wrong, flaky, define('untested')]
`

// Each command is a process.
describe('B15: oxbow tools test', { timeout: 60_000 }, () => {
  test('runs the self-tests of the tools of the default agent, and creates no store', async () => {
    const it = place()
    const { stdout, stderr, code } = await it.run(['tools', 'test'])
    expect(stdout).toContain('✓ calculate: adds\n')
    expect(stderr).toMatch(/^\d+ passed, 0 failed\. Without tests: /)
    expect(code).toBe(0)
    expect(readdirSync(it.directory)).toEqual([])
  })

  test('reports each test of a module’s tools; a failure, a time-out and a broken schema are exit code 1', async () => {
    const it = place()
    writeFileSync(join(it.directory, 'tools.mjs'), MODULE)
    const { stdout, stderr, code } = await it.run(['tools', 'test', '--module', 'tools.mjs'])
    expect(stdout.trim().split('\n')).toEqual([
      '✓ add: adds',
      '✗ add: is off by one: expected {"of":[1],"total":1}, got {"total":2,"of":[1]}',
      expect.stringMatching(/^✗ add: misses its input: Not run: .*required/),
      '✗ broken: throws: it threw: TypeError: no such host 10.0.0.1',
      '✓ pay: pays',
      expect.stringMatching(/^✗ wrong: breaks its schema: .*output schema/),
      '✗ flaky: fails once: it threw: Error: first',
      '✗ slow: ends: slow did not finish within 50 ms and was stopped.',
    ])
    expect(stderr).toBe('2 passed, 6 failed. Without tests: untested.\n')
    expect(code).toBe(1)
  })

  test('runs only the named tools; an unknown name is exit code 2, and a tool without tests is 1', async () => {
    const it = place()
    writeFileSync(join(it.directory, 'tools.mjs'), MODULE)
    const run = (...names: string[]) => it.run(['tools', 'test', '--json', '--module', 'tools.mjs', ...names])
    const one = await run('pay')
    expect([JSON.parse(one.stdout), one.code]).toEqual([{ tool: 'pay', test: 'pays', passed: true }, 0])
    const unknown = await run('pya')
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean pay?')])
    expect(await run('untested')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: '0 passed, 0 failed. Without tests: untested.\n',
    })
  })
})
