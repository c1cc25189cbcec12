import { basename, relative, sep } from 'node:path'
import { watch } from 'chokidar'
import { KnowledgeError, messageOf } from '../errors.ts'
import { isHidden } from './files.ts'
import type { IndexReport } from './indexing.ts'

export interface Watching {
  /** Resolves when further changes will be seen. */
  readonly ready: Promise<void>
  stop(): Promise<void>
}

/** Editors write a file in several steps, and a checkout writes many. */
const SETTLE_MS = 200

/** Calls `refresh` after changes, one run at a time, until `stop` or until the signal. */
export function watchRoots(
  roots: readonly string[],
  refresh: () => Promise<IndexReport>,
  onReport: (report: IndexReport | KnowledgeError) => void,
  signal: AbortSignal,
): Watching {
  const ready = Promise.withResolvers<void>()
  const hidden = (path: string): boolean => {
    const root = roots.find((it) => path === it || path.startsWith(it + sep))
    return (
      root !== undefined &&
      relative(root, path)
        .split(sep)
        .some((it) => it !== '' && isHidden(basename(it)))
    )
  }
  const watcher = watch([...roots], { ignoreInitial: true, followSymlinks: false, ignored: hidden })
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let again = false

  async function run(): Promise<void> {
    do {
      again = false
      try {
        onReport(await refresh())
      } catch (error) {
        if (!signal.aborted) onReport(asKnowledgeError(error))
      }
    } while (again && !signal.aborted)
    running = undefined
  }
  function changed(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (running === undefined) running = run()
      else again = true
    }, SETTLE_MS)
  }
  async function stop(): Promise<void> {
    clearTimeout(timer)
    again = false
    signal.removeEventListener('abort', onAbort)
    await watcher.close()
    await running
  }
  const onAbort = (): void => void stop()
  signal.addEventListener('abort', onAbort)
  watcher.on('ready', () => ready.resolve())
  watcher.on('all', changed)
  watcher.on('error', (error) => onReport(asKnowledgeError(error)))
  return { ready: ready.promise, stop }
}

const asKnowledgeError = (error: unknown): KnowledgeError =>
  error instanceof KnowledgeError
    ? error
    : new KnowledgeError('unreadable', `Watching: ${messageOf(error)}`, { cause: error })
