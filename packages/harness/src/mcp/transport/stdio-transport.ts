// A server that is a program: one JSON-RPC message per line, over its standard input and output. Unlike the library's
// own transport it passes only PATH of this environment, and ends everything that the program has started.

import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { SdkError, SdkErrorCode, serializeMessage, type Transport } from '@modelcontextprotocol/client'
import { defined } from '@oxbow/core/internal'
import spawn from 'cross-spawn'
import { MAX_MESSAGE_BYTES, type McpStdioServer } from '../options.ts'
import { type Noise, stdoutReader } from './stdout-reader.ts'

/** How long a program may take to exit without a signal, and then after SIGTERM. */
const PATIENCE_MS = 1_000
const STDERR_TAIL = 500

export interface StdioTransport extends Transport {
  /** The end of its standard error. */
  said(): string
  /** Other text on its standard output. */
  noise(): Noise
  /** Why this client ended it, if it did. */
  fault(): Error | undefined
  /** The library recognises a transport over pipes by these two. */
  readonly pid: number | null
  readonly stderr: null
}

const running = new Set<ChildProcess>()
/** Without waiting, so that no child process outlives this one. */
process.on('exit', () => {
  for (const child of running) signal(child, 'SIGKILL')
})

export function stdioTransport(server: McpStdioServer): StdioTransport {
  let child: ChildProcess | undefined
  let closing: Promise<void> | undefined
  let tail = ''
  let fault: Error | undefined

  const reader = stdoutReader(server.maxMessageBytes ?? MAX_MESSAGE_BYTES, {
    onMessage: (message) => transport.onmessage?.(message),
    // It is unknown whose answer it was: all waiting requests receive the error, and the program is ended.
    onTooLong(error) {
      fault = error
      void transport.close()
    },
  })

  const transport: StdioTransport = {
    stderr: null,
    get pid() {
      return child?.pid ?? null
    },
    said: () => tail.trim(),
    noise: () => reader.noise(),
    fault: () => fault,
    start: () =>
      new Promise((resolve, reject) => {
        const { PATH = '' } = process.env
        const started = spawn(server.command, [...(server.args ?? [])], {
          env: { PATH, ...server.env },
          stdio: 'pipe',
          // Its own process group, which can be killed as a whole: `npx` and shells start further processes.
          detached: process.platform !== 'win32',
          windowsHide: true,
          ...defined({ cwd: server.cwd }),
        })
        child = started
        started.once('spawn', () => {
          running.add(started)
          resolve()
        })
        started.once('error', (error) => {
          reject(error)
          transport.onerror?.(error)
        })
        started.once('close', () => {
          signal(started, 'SIGKILL')
          running.delete(started)
          child = undefined
          transport.onclose?.()
        })
        started.stdout?.on('data', reader.read)
        started.stderr?.on('data', (chunk: Buffer) => {
          tail = (tail + chunk.toString()).slice(-STDERR_TAIL)
        })
        for (const stream of [started.stdin, started.stdout, started.stderr])
          stream?.on('error', (error) => transport.onerror?.(error))
      }),
    send: (message) =>
      new Promise((resolve, reject) => {
        const input = child?.stdin
        if (input?.writable !== true) reject(new SdkError(SdkErrorCode.NotConnected, 'Not connected'))
        else if (input.write(serializeMessage(message))) resolve()
        else input.once('drain', resolve)
      }),
    close() {
      closing ??= end(child)
      return closing
    },
  }
  return transport
}

/** As the specification requires: close its input, wait, SIGTERM, wait, SIGKILL. */
async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || !running.has(child)) return
  const gone = new Promise<true>((resolve) => child.once('close', () => resolve(true)))
  const within = (): Promise<boolean> => Promise.race([gone, delay(PATIENCE_MS, false, { ref: false })])
  child.stdin?.end()
  if (await within()) return
  signal(child, 'SIGTERM')
  if (await within()) return
  signal(child, 'SIGKILL')
  // A process outside the group may still hold the pipes.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
  await gone
}

/** To the whole group, on systems with process groups. */
function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    if (process.platform === 'win32') child.kill(name)
    else process.kill(-child.pid, name)
  } catch {
    // It is gone.
  }
}
