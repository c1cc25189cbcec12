// Process information from the operating system.
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Processes with the same identity see the same process ids. */
export function hostIdentity(): string {
  return `${hostname()} ${attempt(() => readlinkSync('/proc/self/ns/pid')) ?? process.platform}`
}

/**
 * When a process started, as text that no later process with the same id can repeat: the boot, and the clock ticks
 * since. Undefined when there is no such process, when it is a zombie, or where there is no /proc.
 */
export function processStart(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  // The second field is the program's name in parentheses and may hold anything, so count from its end.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields === undefined || fields[0] === 'Z' || fields[0] === 'X') return undefined
  return `${attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? ''} ${fields[19]}`
}

export function processExists(pid: number): boolean {
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
