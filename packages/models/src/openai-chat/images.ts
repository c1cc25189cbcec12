// Images that a model generates in chat completions: OpenRouter's `images`, or parts of the content.
import type { DataBlock } from '@oxbow/core'

/** Undefined for a value that is not an image URL. */
export function imageOf(url: unknown): DataBlock | undefined {
  if (typeof url !== 'string') return undefined
  const [, mediaType, data] = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,]*)?;base64,(.+)$/s.exec(url) ?? []
  if (mediaType !== undefined && data !== undefined) return { type: 'data', mediaType, data }
  return /^https?:/.test(url) && URL.canParse(url) ? { type: 'data', mediaType: 'image/png', url } : undefined
}
