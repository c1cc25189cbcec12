// Processes that a run has started, so that it can end all of them: also those in groups of their own, and those whose parent
// has ended.
import { readdirSync, readFileSync } from 'node:fs'

export interface Started {
  readonly pid: number
  readonly command: string
}

/**
 * Descendants of a process, and processes whose environment contains `marker`. Needs Linux's /proc; elsewhere the list is empty.
 *
 * @param root not part of the result
 * @param marker a text that no other process has in its environment, for example the path of a scratch folder
 */
export function startedBy(root: number, marker: string): Started[] {
  const all = processes()
  const found = new Set<number>([root])
  // Parents may come after their children: process ids are used again.
  for (let before = 0; before < found.size; ) {
    before = found.size
    for (const it of all) if (found.has(it.parent)) found.add(it.pid)
  }
  const marked = all.filter((it) => found.has(it.pid) || read(`/proc/${it.pid}/environ`).includes(marker))
  return marked
    .filter((it) => it.pid !== root && it.pid !== process.pid)
    .map(({ pid }) => ({ pid, command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim() }))
}

/** Kills until nothing is left: a process may have started another one meanwhile. */
export function killStartedBy(root: number, marker: string): void {
  for (let rounds = 0; rounds < 10; rounds++) {
    const running = startedBy(root, marker)
    if (running.length === 0) return
    for (const { pid } of running) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // Ended in between.
      }
    }
  }
}

function processes(): { pid: number; parent: number }[] {
  let names: string[]
  try {
    names = readdirSync('/proc').filter((it) => /^\d+$/.test(it))
  } catch {
    return []
  }
  return names.flatMap((name) => {
    // "pid (command) state parent …"; the command may contain spaces and parentheses.
    const [state, parent] = read(`/proc/${name}/stat`).split(') ').at(-1)!.split(' ')
    return state === undefined || parent === undefined || state === 'Z'
      ? []
      : [{ pid: Number(name), parent: Number(parent) }]
  })
}

/** Empty for a process that has ended or belongs to another user. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
