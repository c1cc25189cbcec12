// Runs the commands of the tutorial in order; only files and ports differ.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '@oxbow/testing'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('H13: the tutorial can be followed word by word', { timeout: 120_000 }, async () => {
  const page = readFileSync(join(root, 'docs/guides/tutorial-approvals.md'), 'utf8')
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((it) => it[1]!)
  const [keys, tickets, access, asks, decides, looks, ...rest] = blocks
  expect(rest).toEqual([])

  const folder = mkdtempSync(join(tmpdir(), 'oxbow-tutorial-'))
  const [ticketsPort, port] = [await freePort(), await freePort()]
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    TICKETS_PORT: String(ticketsPort),
    TICKETS_STORE: join(folder, 'tickets.db'),
    OXBOW_SERVER_PORT: String(port),
    OXBOW_STORE_PATH: join(folder, 'access.db'),
    OXBOW_IDENTITY_KEYS_FILE: join(folder, 'access-keys.toml'),
  }
  const here = (block: string) => block.replaceAll('.oxbow', folder).replaceAll('localhost:8081', `localhost:${port}`)
  const type = (...parts: string[]) =>
    new Promise<string>((resolve, reject) => {
      execFile('bash', ['-ec', parts.map(here).join('\n')], { cwd: root, env }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${error.message}\n${stderr}`)),
      )
    })
  const children: ChildProcess[] = []
  onTestFinished(() => {
    for (const it of children) if (it.pid !== undefined) process.kill(-it.pid, 'SIGKILL')
    rmSync(folder, { recursive: true })
  })
  const serve = (block: string): (() => string) => {
    const child = spawn('bash', ['-ec', block], { cwd: root, env, detached: true })
    children.push(child)
    let seen = ''
    for (const it of [child.stdout, child.stderr])
      it.on('data', (part: Buffer) => {
        seen += part.toString()
      })
    return () => seen
  }
  const listens = (seen: () => string) =>
    until(() => seen().includes('listens on'), { deadlineMs: 20_000 }).catch(() => expect.fail(seen()))

  await type(keys!)
  const ticketsSay = serve(tickets!)
  await listens(ticketsSay)
  await listens(serve(access!))
  const [as] = asks!.split('\n') as [string]
  expect(JSON.parse(await type(asks!))).toMatchObject({
    approvals: [
      { tool: 'submit_request', arguments: { person: 'ann', system: 'crm', days: 30, reason: 'a new customer' } },
    ],
  })
  const decided = await type(as, decides!, 'echo', 'echo $ID')
  expect(decided).toMatch(/"approval_forbidden".*"status":"approved"/)
  await until(() => ticketsSay().includes('ticket 1: ann gets crm for 30 days'), { deadlineMs: 20_000 }).catch(() =>
    expect.fail(ticketsSay()),
  )
  const id = decided.trim().split('\n').at(-1)!
  // The ticket is there a moment before the agent has heard of it.
  const seen = await until(
    async () => {
      const it = await type(as, `ID=${id}`, looks!)
      return it.includes('"call":{"status":"success"') && it
    },
    { deadlineMs: 20_000 },
  )
  expect(seen).toContain('"approver":"mia"')
})

test('a service that cannot start says why, without a stack trace', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'oxbow-tutorial-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const main = fileURLToPath(new URL('main.ts', import.meta.url))
  const told = await new Promise<string>((resolve) => {
    const options = { cwd: folder, env: { PATH: process.env.PATH ?? '', HOME: folder } }
    execFile(process.execPath, ['--conditions=oxbow-source', main], options, (_error, _stdout, stderr) =>
      resolve(stderr),
    )
  })
  expect(told).toMatch(/^The service cannot start: identity\.keysFile: .* cannot be read \(ENOENT\)\.\n$/)
})

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
