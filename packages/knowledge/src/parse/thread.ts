// The thread that parses documents. They may be hostile, so it can be terminated at any point.
import { parentPort } from 'node:worker_threads'
import { KnowledgeError, type KnowledgeErrorCode, messageOf } from '../errors.ts'
import { type Passage, type PassageOptions, passagesOf } from '../text/passages.ts'
import { parseDocument } from './parse.ts'

export interface ParseTask {
  /** Its extension decides the format. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly passages: PassageOptions
}

export interface Parsed {
  readonly title: string | undefined
  readonly passages: readonly Passage[]
}

export type ParseAnswer = { readonly parsed: Parsed } | { readonly code: KnowledgeErrorCode; readonly message: string }

/** They are written in one go, at about ten thousand a second. */
const MAX_PASSAGES = 100_000

const port = parentPort!

port.on('message', async ({ path, bytes, passages }: ParseTask) => {
  let answer: ParseAnswer
  try {
    const document = await parseDocument(path, bytes)
    const cut = passagesOf(document, passages)
    if (cut.length > MAX_PASSAGES)
      throw new KnowledgeError(
        'too_complex',
        `It has ${cut.length} passages; at most ${MAX_PASSAGES} are kept. Split it.`,
      )
    answer = { parsed: { title: document.title, passages: cut } }
  } catch (error) {
    answer = { code: codeOf(error), message: messageOf(error) }
    if (!(error instanceof KnowledgeError)) answer = { ...answer, message: `It cannot be parsed: ${answer.message}` }
  }
  port.postMessage(answer)
})

/** A parser throws a RangeError for too deep nesting or too long a text. */
function codeOf(error: unknown): KnowledgeErrorCode {
  if (error instanceof KnowledgeError) return error.code
  return error instanceof RangeError ? 'too_complex' : 'corrupt'
}
