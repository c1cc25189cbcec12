// The command line as a user starts it: a real process in its own directory.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { type ScriptedModel, type ScriptedModelOptions, scriptedModel, until } from '@oxbow/testing'
import { onTestFinished } from 'vitest'

export const BIN = fileURLToPath(new URL('../bin/oxbow.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Command {
  readonly child: ChildProcessWithoutNullStreams
  /** Sends a signal to the process that the launcher has started. */
  inner(signal: NodeJS.Signals): void
  /** Its output so far. */
  output(): string
  /** Resolves when the output contains this. */
  shows(what: string | RegExp): Promise<void>
  readonly ended: Promise<Ended>
}

export interface Place {
  readonly directory: string
  start(args: readonly string[], options?: { env?: Record<string, string>; input?: string | null }): Command
  run(args: readonly string[], options?: { env?: Record<string, string>; input?: string }): Promise<Ended>
}

/** The launcher's own child dies with it, even when a killed launcher cannot signal it. */
function killGroup({ pid }: { readonly pid?: number | undefined }): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // They are gone already.
  }
}

/** An empty directory, with only PATH in the environment. */
export function place(): Place {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-cli-'))
  const children: ChildProcessWithoutNullStreams[] = []
  onTestFinished(async () => {
    for (const it of children) killGroup(it)
    rmSync(directory, { recursive: true, force: true })
  })
  const start: Place['start'] = (args, { env = {}, input } = {}) => {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: directory,
      env: { PATH: process.env.PATH ?? '', HOME: directory, ...env },
      detached: true,
    })
    children.push(child)
    let seen = ''
    child.stdout.on('data', (it: Buffer) => {
      seen += it.toString()
    })
    child.stderr.on('data', (it: Buffer) => {
      seen += it.toString()
    })
    if (input !== null) child.stdin.end(input ?? '')
    const ended = Promise.all([
      new Promise<number | null>((resolve) => child.once('close', resolve)),
      text(child.stdout),
      text(child.stderr),
    ]).then(([code, stdout, stderr]) => ({ code, stdout, stderr }))
    return {
      child,
      inner(signal) {
        const found = execFileSync('pgrep', ['-P', String(child.pid)])
        process.kill(Number(found.toString().trim()), signal)
      },
      output: () => seen,
      shows: async (what) => {
        await until(() => (typeof what === 'string' ? seen.includes(what) : what.test(seen)), {
          deadlineMs: 15_000,
        }).catch(() => {
          throw new Error(`${args.join(' ')} does not show ${String(what)}; it shows:\n${seen}`)
        })
      },
      ended,
    }
  }
  return { directory, start, run: (args, options) => start(args, options).ended }
}

interface TerminalCommand {
  type(text: string): void
  /** Resolves when this is on the screen, below the last awaited text. */
  shows(what: string): Promise<void>
  readonly closed: Promise<unknown>
}

/** The command on a terminal, provided by util-linux's `script`. */
export function terminal({ directory }: Place, args: readonly string[], env: Record<string, string>): TerminalCommand {
  const child = spawn('/usr/bin/script', ['-qfc', [process.execPath, BIN, ...args].join(' '), '/dev/null'], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', HOME: directory, TERM: 'xterm', NO_COLOR: '1', ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let seen = ''
  let from = 0
  child.stdout.on('data', (it: Buffer) => {
    // Cursor movements of the line editor are not text.
    seen += stripVTControlCharacters(it.toString())
  })
  return {
    type: (text) => void child.stdin.write(text),
    async shows(what) {
      await until(() => seen.includes(what, from), { deadlineMs: 15_000 }).catch(() => {
        throw new Error(`no ${what} in:\n${seen.slice(from)}\nafter:\n${seen.slice(0, from)}`)
      })
      from = seen.indexOf(what, from) + what.length
    },
    closed: new Promise((resolve) => child.once('close', resolve)),
  }
}

/** A scripted model, and the environment that chooses it. */
export async function scripted(
  options: ScriptedModelOptions,
): Promise<{ server: ScriptedModel; env: Record<string, string> }> {
  const server = await scriptedModel(options)
  onTestFinished(() => server.close())
  return { server, env: { OXBOW_MODEL: 'vllm:scripted', VLLM_BASE_URL: server.url } }
}
