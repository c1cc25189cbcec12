// PostgreSQL and Redis of this test alone, so that restarts harm nobody else.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '@oxbow/testing'

const run = promisify(execFile)

const initdb = globSync('/usr/lib/postgresql/*/bin/initdb').toSorted().at(-1)
const redis = ['/usr/bin/redis-server', '/usr/local/bin/redis-server'].find((it) => existsSync(it))

/** Why the test cannot start them; undefined when it can. */
export const missingServices: string | undefined =
  initdb === undefined
    ? 'PostgreSQL is not installed (no initdb in /usr/lib/postgresql)'
    : redis === undefined
      ? 'Redis is not installed (no redis-server)'
      : undefined

export interface Services {
  readonly postgres: string
  readonly redis: string
  /** Stops at once, as a crash would, and starts again. */
  restartPostgres(): Promise<void>
  /** Comes back with nothing in its memory. */
  restartRedis(): Promise<void>
  close(): Promise<void>
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

export async function startServices(): Promise<Services> {
  const [postgresPort, redisPort] = [await freePort(), await freePort()]
  const bin = join(initdb!, '..')
  // PostgreSQL refuses to run as root.
  const isRoot = process.getuid?.() === 0
  // Its user may not enter a temporary folder that is root's own.
  const directory = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'oxbow-cluster-'))
  const data = join(directory, 'db')
  if (isRoot) {
    const { stdout } = await run('id', ['-u', 'postgres'])
    chownSync(directory, Number(stdout), Number(stdout))
  }
  const asOwner = (program: string, args: readonly string[]) =>
    isRoot ? run('runuser', ['-u', 'postgres', '--', join(bin, program), ...args]) : run(join(bin, program), args)
  const control = async (...args: string[]): Promise<void> => {
    await asOwner('pg_ctl', ['-D', data, '-l', join(directory, 'log'), '-w', ...args])
  }
  await asOwner('initdb', ['-D', data, '-A', 'trust', '-U', 'postgres', '--no-sync'])
  const flags = `-p ${postgresPort} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=120`
  await control('-o', flags, 'start')

  let cache: ChildProcess | undefined
  const startRedis = async (): Promise<void> => {
    cache = spawn(redis!, ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
      cwd: directory,
    })
    await until(() => answers(redisPort))
  }
  await startRedis()
  const stopRedis = async (): Promise<void> => {
    if (cache === undefined || cache.exitCode !== null) return
    const exited = once(cache, 'exit')
    cache.kill('SIGKILL')
    await exited
  }

  return {
    postgres: `postgres://postgres@127.0.0.1:${postgresPort}/postgres`,
    redis: `redis://127.0.0.1:${redisPort}`,
    async restartPostgres() {
      await control('-m', 'immediate', 'stop')
      await control('-o', flags, 'start')
    },
    async restartRedis() {
      await stopRedis()
      await startRedis()
    },
    async close() {
      await stopRedis()
      await control('-m', 'immediate', 'stop')
      rmSync(directory, { recursive: true })
    },
  }
}
