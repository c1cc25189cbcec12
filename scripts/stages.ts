// Runs commands one after the other. Their child processes end with them, even when this process is stopped.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { killStartedBy, startedBy } from './processes.ts'

export interface Runner {
  /** Also for temporary files of the commands; removed by `close`. */
  readonly scratch: string
  /** @returns whether the command ended with 0 */
  run(command: readonly string[]): Promise<boolean>
  /** Kills what the commands have left running. @returns the command lines of these processes */
  close(): string[]
}

/** On SIGTERM, SIGINT and SIGHUP everything that was started is killed, and the process ends with 128 + the signal. */
export function stageRunner(): Runner {
  const scratch = mkdtempSync(join(tmpdir(), 'oxbow-check-'))
  const close = (): string[] => {
    const left = startedBy(process.pid, scratch).map((it) => it.command)
    killStartedBy(process.pid, scratch)
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
    return left
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.once(signal, () => {
      close()
      process.exit(128 + constants.signals[signal])
    })
  return {
    scratch,
    close,
    run: ([program = '', ...args]) =>
      new Promise((resolve) => {
        const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, TMPDIR: scratch } })
        child.once('error', (error) => {
          console.error(`${program}: ${error.message}`)
          resolve(false)
        })
        child.once('exit', (code) => resolve(code === 0))
      }),
  }
}
