// The official conformance suite of MCP, in both directions, for each version that it has requirements of.
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { rig } from '../../packages/server/src/test.fixture.ts'
import { needsInstalled, path } from './installed.ts'

needsInstalled()

const VERSIONS = ['2025-11-25', '2026-07-28']

interface Outcome {
  readonly passed: string[]
  /** The checks that failed, by scenario. */
  readonly checks: Record<string, string[]>
}

async function suite(...args: string[]): Promise<{ code: number | null; output: string; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-mcp-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const program = path('./node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const child = spawn(process.execPath, [program, ...args, '--output-dir', directory], {
    stdio: ['ignore', 'pipe', 'ignore'],
    // Each scenario starts our client anew.
    env: { PATH: process.env.PATH, HOME: directory, NODE_COMPILE_CACHE: join(tmpdir(), 'oxbow-mcp-compiled') },
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const output = await text(child.stdout)
  return { code: await ended, output, directory }
}

/** All that a version asks of a server, by scenario. */
async function serverSuite(url: string, version: string): Promise<Outcome> {
  const { output, directory } = await suite('server', '--url', url, '--requirements', version)
  const [, summary = ''] = output.split('=== SUMMARY ===')
  const passed = [...summary.matchAll(/^✓ (\S+): /gm)].map((it) => it[1]!).sort()
  const checks: Record<string, string[]> = {}
  for (const entry of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('checks.json')) continue
    const all = JSON.parse(readFileSync(join(directory, entry), 'utf8')) as { id: string; status: string }[]
    const scenario = entry.replace(/^server-|-\d{4}-\d\d-\d\dT.*$/g, '')
    checks[scenario] = all.filter((it) => it.status === 'FAILURE').map((it) => it.id)
  }
  return { passed, checks }
}

describe('Y12: our client', () => {
  /** A version's requirements for a client, frozen at its release. */
  function required(version: string): string[] {
    const file = path(`./node_modules/@modelcontextprotocol/conformance/requirements/${version}.yaml`)
    const [, list = ''] = /^client:\n((?: .*\n|\n)+)/m.exec(readFileSync(file, 'utf8')) ?? []
    return [...list.matchAll(/^ +- (\S+)/gm)].map((it) => it[1]!)
  }

  // The suite itself starts all scenarios at once, and a busy machine then is too slow for some of them.
  test.each(VERSIONS)('passes every scenario that %s requires of a client', { timeout: 300_000 }, async (version) => {
    const scenarios = required(version)
    expect(scenarios.length).toBeGreaterThan(15)
    const failed: string[] = []
    const command = `${process.execPath} -C oxbow-source ${path('./conformance-client.ts')}`
    // One after the other: two of its servers can choose the same port.
    for (const scenario of scenarios) {
      const options = ['--spec-version', version, '--timeout', '60000', '--command', command]
      const { code, output } = await suite('client', '--scenario', scenario, ...options)
      if (code !== 0) failed.push(`${scenario}\n${output.slice(-2_000)}`)
    }
    expect(failed).toEqual([])
  })
})

describe('X4: POST /mcp', () => {
  /** The checks that need no tools, resources or prompts of the suite. The others need those, by name. */
  const APPLICABLE: Record<string, string[]> = {
    '2025-11-25': [
      'dns-rebinding-protection',
      'ping',
      'resources-list',
      'server-initialize',
      'server-session-lifecycle',
      'server-sse-multiple-streams',
      'server-sse-polling',
      'tools-list',
    ],
    '2026-07-28': [
      'dns-rebinding-protection',
      'http-header-validation',
      'input-required-result-ignore-extra-params',
      'input-required-result-missing-input-response',
      'input-required-result-unsupported-methods',
      'input-required-result-validate-input',
      'resources-list',
      'sep-2164-resource-not-found',
      'server-sse-multiple-streams',
      'tasks-status-notifications',
      'tools-list',
    ],
  }

  test.each(VERSIONS)('passes every scenario of %s that can be run with it', { timeout: 120_000 }, async (version) => {
    const it = await rig()
    onTestFinished(() => it.close())
    const { passed, checks } = await serverSuite(`${it.url}/mcp`, version)
    expect(passed).toEqual(APPLICABLE[version])
    if (version !== '2026-07-28') return
    // Of these two all that needs no tool or prompt of the suite's own.
    expect(checks['server-stateless']).toEqual([
      'sep-2575-server-rejects-undeclared-capability',
      'sep-2575-missing-capability-http-400',
      'sep-2575-http-server-no-independent-requests-on-stream',
      'sep-2575-server-no-log-without-loglevel',
    ])
    expect(checks.caching).toEqual(['sep-2549-prompts-list-caching-hints'])
  })
})
