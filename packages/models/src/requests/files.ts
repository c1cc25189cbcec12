// Files in a history, in forms that the providers accept: the history is sent again in every turn, so one refused file
// would fail each of them.
import type { DataBlock } from '@oxbow/core'

export type Fitted =
  | { readonly as: 'image' | 'pdf' | 'other' }
  /** Its content as text, or a note that there was a file. */
  | { readonly as: 'text'; readonly text: string }

const image = /^image\/(jpeg|png|gif|webp)$/
const readable =
  /^(text\/|image\/svg\+xml$|application\/(json|xml|yaml|x-yaml|toml|javascript|x-ndjson|sql)$)|\+(json|xml)$/

/** The note that replaces a file that the model cannot open. */
export const fileNote = ({ name, mediaType, url }: DataBlock): string =>
  `[file ${[name, mediaType, url].filter(Boolean).join(' ')}]`

/** @param others media types that this format also accepts as files */
export function fitted(block: DataBlock, others = /^$/): Fitted {
  const mediaType = block.mediaType.toLowerCase().split(';')[0]!.trim()
  if (image.test(mediaType)) return { as: 'image' }
  if (mediaType === 'application/pdf') return { as: 'pdf' }
  if (readable.test(mediaType) && block.data !== undefined) {
    const content = Buffer.from(block.data, 'base64').toString()
    if (content.trim() !== '') return { as: 'text', text: `${fileNote(block)}\n${content}` }
  }
  return others.test(mediaType) ? { as: 'other' } : { as: 'text', text: fileNote(block) }
}
