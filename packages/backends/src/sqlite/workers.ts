// Who is alive. On this host the operating system knows at once; elsewhere a heartbeat tells.
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Workers } from '@oxbow/core'
import { assertName } from '../keys.ts'
import type { Context } from './context.ts'

const heartbeatMs = 5_000
const silentMs = 20_000
const forgetAfterMs = 24 * 60 * 60 * 1_000

export interface SqliteWorkers extends Workers {
  /**
   * Ends the heartbeats. Who was not released stays alive with this process: a tool of theirs may still be at work, and
   * nobody else may take that for dead.
   */
  close(): void
}

export function sqliteWorkers({ db, writer, guard }: Context): SqliteWorkers {
  const findWorker = db.prepare('SELECT host, pid, started, heartbeat FROM workers WHERE worker = ?')
  const heartbeats = new Set<NodeJS.Timeout>()
  const host = hostIdentity()
  const started = processStart(process.pid) ?? ''
  return {
    async announce(worker) {
      guard(() => assertName(worker, 'worker'))
      const beat = () => writer.write(['announce', worker, host, process.pid, started, Date.now()])
      const announcing = beat()
      // In the same transaction, so it costs nothing of its own.
      const forgetting = writer.write(['forgetWorkers', Date.now() - forgetAfterMs])
      await Promise.all([announcing, forgetting])
      // A beat that fails is made good by the next; appends report what is wrong with the file.
      const timer = setInterval(() => beat().catch(() => {}), heartbeatMs).unref()
      heartbeats.add(timer)
      return {
        async release() {
          if (!heartbeats.delete(timer)) return
          clearInterval(timer)
          await writer.write(['release', worker, host, process.pid, started])
        },
      }
    },
    async alive(worker) {
      return guard(() => {
        const row = findWorker.get(worker)
        if (row === undefined) return false
        const pid = Number(row.pid)
        if (row.host === host && row.started !== '') return processStart(pid) === row.started
        // A process id alone may have gone to another process since.
        const fresh = Date.now() - Number(row.heartbeat) < silentMs
        return fresh && (row.host !== host || exists(pid))
      })
    },
    close() {
      for (const timer of heartbeats) clearInterval(timer)
      heartbeats.clear()
    },
  }
}

/** Processes with the same identity see the same process ids. */
function hostIdentity(): string {
  return `${hostname()} ${attempt(() => readlinkSync('/proc/self/ns/pid')) ?? process.platform}`
}

/**
 * When a process began, as text that no later process of the same id can repeat: the boot, and the clock ticks since.
 * Undefined when there is no such process, when it is dead and only not yet collected, or where there is no /proc.
 */
function processStart(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in parentheses and may hold anything, so count from its end.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields === undefined || fields[0] === 'Z' || fields[0] === 'X') return undefined
  return `${attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? ''} ${fields[19]}`
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}
