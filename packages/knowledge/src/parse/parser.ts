// The indexing thread's side of the thread that parses documents.
import { Worker } from 'node:worker_threads'
import { KnowledgeError, type KnowledgeErrorCode, messageOf } from '../errors.ts'
import type { ParseAnswer, Parsed, ParseTask } from './thread.ts'

export interface Parser {
  /**
   * Rejects with a KnowledgeError: any error of `parseDocument`, `too_complex` when the file takes too much time or
   * memory, `cancelled` at the signal.
   */
  parse(task: ParseTask): Promise<Parsed>
  close(): Promise<void>
}

/** A multiple of what a text of 20 MiB needs. */
const HEAP_MB = 512
const BUFFERS_MB = 256
const tooMuch = 'It is too complex: reading it takes too much memory. Split it.'
/** How often the buffers are measured: a thread's limits only cover its heap. */
const LOOK_EVERY_MS = 100

/** Node runs the .ts sources directly; the build writes .js files. */
const threadFile = new URL(import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js', import.meta.url)

/** One file at a time, in a thread that starts with the first. `timeoutMs` applies to each file. */
export function startParser(timeoutMs: number, signal: AbortSignal): Parser {
  let worker: Worker | undefined
  function start(): Worker {
    const thread = new Worker(threadFile, {
      name: 'oxbow-parser',
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: 64 },
    })
    // A failure between two files is harmless: the next file gets a new thread.
    thread.on('error', () => undefined)
    thread.once('exit', () => {
      if (worker === thread) worker = undefined
    })
    return thread
  }

  async function close(): Promise<void> {
    const ended = worker
    worker = undefined
    await ended?.terminate()
  }

  return {
    async parse(task) {
      worker ??= start()
      const thread = worker
      const answered = Promise.withResolvers<ParseAnswer>()
      const fail = (code: KnowledgeErrorCode, message: string): void =>
        answered.reject(new KnowledgeError(code, message))
      const onAbort = (): void => fail('cancelled', 'Indexing was cancelled.')
      const onError = (error: NodeJS.ErrnoException): void => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') fail('too_complex', tooMuch)
        else fail('corrupt', `It cannot be parsed: ${messageOf(error)}`)
      }
      const onExit = (): void => fail('corrupt', 'It cannot be parsed: its parser has ended.')
      const look = async (): Promise<void> => {
        const { external_memory: bytes } = await thread.getHeapStatistics()
        if (bytes > BUFFERS_MB * 1024 * 1024) fail('too_complex', tooMuch)
      }
      thread.once('message', answered.resolve).once('error', onError).once('exit', onExit)
      signal.addEventListener('abort', onAbort)
      // The end of the thread has its own event.
      const looking = setInterval(() => look().catch(() => undefined), LOOK_EVERY_MS)
      const late = `It is too complex: reading it takes longer than ${timeoutMs} ms. Split it.`
      const timer = setTimeout(() => fail('too_complex', late), timeoutMs)
      if (signal.aborted) onAbort()
      else thread.postMessage(task)
      let answer: ParseAnswer
      try {
        answer = await answered.promise
      } catch (error) {
        await close()
        throw error
      } finally {
        clearTimeout(timer)
        clearInterval(looking)
        signal.removeEventListener('abort', onAbort)
        thread.off('message', answered.resolve).off('error', onError).off('exit', onExit)
      }
      if ('parsed' in answer) return answer.parsed
      throw new KnowledgeError(answer.code, answer.message)
    },
    close,
  }
}
