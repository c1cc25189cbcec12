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
  readonly failed: string[]
  /** The checks that failed, by scenario. */
  readonly checks: Record<string, string[]>
}

async function conformance(...args: string[]): Promise<Outcome> {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-mcp-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const suite = path('./node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const child = spawn(process.execPath, [suite, ...args, '--output-dir', directory], {
    stdio: ['ignore', 'pipe', 'ignore'],
    // Each scenario starts our client anew.
    env: { PATH: process.env.PATH, HOME: directory, NODE_COMPILE_CACHE: join(directory, 'compiled') },
  })
  const output = await text(child.stdout)
  const [, summary = ''] =
    output.split('=== SUITE SUMMARY ===').length > 1
      ? output.split('=== SUITE SUMMARY ===')
      : output.split('=== SUMMARY ===')
  const names = (mark: string): string[] =>
    [...summary.matchAll(new RegExp(`^${mark} (\\S+): `, 'gm'))].map((it) => it[1]!).sort()
  const checks: Record<string, string[]> = {}
  for (const entry of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('checks.json')) continue
    const all = JSON.parse(readFileSync(join(directory, entry), 'utf8')) as { id: string; status: string }[]
    const scenario = entry.replace(/^server-|-\d{4}-\d\d-\d\dT.*$/g, '')
    checks[scenario] = all.filter((it) => it.status === 'FAILURE').map((it) => it.id)
  }
  return { passed: names('✓'), failed: names('✗'), checks }
}

describe('Y12: our client', () => {
  /** Extensions of the authorization that no version requires: proof of possession, identity of workloads and enterprises. */
  const EXTENSIONS = ['auth/dpop', 'auth/dpop-nonce', 'auth/enterprise-managed-authorization', 'auth/wif-jwt-bearer']

  test.each(VERSIONS)('passes every scenario that %s requires of a client', { timeout: 300_000 }, async (version) => {
    const { passed, failed } = await conformance(
      'client',
      '--requirements',
      version,
      '--timeout',
      '240000',
      '--command',
      `${process.execPath} -C oxbow-source ${path('./conformance-client.ts')}`,
    )
    expect(failed).toEqual(EXTENSIONS)
    expect(passed.length).toBeGreaterThan(20)
  })
})

describe('X4: POST /mcp', () => {
  /** What the suite finds without tools, resources and prompts of its own. The others need those, by their names. */
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
    const { passed, checks } = await conformance('server', '--url', `${it.url}/mcp`, '--requirements', version)
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
