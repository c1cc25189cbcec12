// Pictures for a model that sees none: they are in the history, so each later turn would be refused as well.
import { type Message, type Model, ModelError, type ModelRequest } from '@oxbow/core'
import { fileNote } from '../requests/files.ts'
import { perObject } from '../requests/write.ts'

/**
 * The same model. When it refuses a request because it does not support images, the request is made again with a note
 * in the place of each, and so are those after it.
 */
export function withNotesForImages(model: Model): Model {
  let seesNone = false
  return {
    id: model.id,
    get contextWindow() {
      return model.contextWindow
    },
    checkTools: (tools) => model.checkTools?.(tools),
    async generate(request, options) {
      if (!request.messages.some(hasImage)) return model.generate(request, options)
      if (seesNone) return model.generate(withoutImages(request), options)
      try {
        return await model.generate(request, options)
      } catch (error) {
        if (!refusesImages(error)) throw error
        seesNone = true
        process.emitWarning(`${model.id} does not support images: it gets their names instead.`, {
          type: 'OxbowWarning',
          code: 'OXBOW_NO_IMAGES',
        })
        return model.generate(withoutImages(request), options)
      }
    },
  }
}

const isImage = (block: { readonly type: string; readonly mediaType?: string }): boolean =>
  block.type === 'data' && /^image\//i.test(block.mediaType ?? '')

const hasImage = ({ blocks }: Message): boolean =>
  blocks.some((it) => isImage(it) || (it.type === 'result' && it.content.some(isImage)))

const withoutImages = (request: ModelRequest): ModelRequest => ({ ...request, messages: request.messages.map(noted) })

const noted = perObject((message: Message): Message => {
  if (!hasImage(message)) return message
  const note = <Block extends Message['blocks'][number]>(block: Block) =>
    block.type === 'data' && isImage(block)
      ? { type: 'text' as const, text: `${fileNote(block)} You cannot see images.` }
      : block
  const blocks = message.blocks.map((it) =>
    it.type === 'result' ? { ...it, content: it.content.map((part) => note(part)) } : note(it),
  )
  return { ...message, blocks }
})

/** Of an image that is too large or damaged another model would say the same. */
const other = /too (large|big|many)|exceed|size|format|corrupt|base64|decod|process|download|fetch/i
const refusal = new RegExp(
  [
    `(image|vision|multi-?modal)[^.]{0,80}(not (supported|enabled|allowed|available)|unsupported|only supported)`,
    `(not|n't|no endpoints found that) support[^.]{0,40}(image|vision|multi-?modal)`,
    `not a (vision|multi-?modal)|unknown variant .?image_url|at most 0 image|content must be a string|data required for image`,
  ].join('|'),
  'i',
)

function refusesImages(error: unknown): boolean {
  if (!(error instanceof ModelError) || error.retryable || error.partial !== undefined) return false
  const said = String(error.details?.said ?? error.message)
  return refusal.test(said) && !other.test(said)
}
