// The text of messages, as programs read it and as people are shown it.
import type { Block, ResultBlock } from './types.ts'

type AnyBlock = Block | ResultBlock

/**
 * The text blocks, joined. Everything else (thinking, calls, images, files) has no text.
 *
 * @example textOf([{ type: 'text', text: 'Hello' }]) // 'Hello'
 */
export const textOf = (blocks: readonly AnyBlock[], separator = ''): string =>
  blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(separator)

/**
 * Text blocks as they are, and images and files as `[name]`, or as `[media type]` where they have no name.
 *
 * @example shownText([{ type: 'data', mediaType: 'image/png', data: '…' }]) // '[image/png]'
 */
export const shownText = (blocks: readonly AnyBlock[], separator = '\n'): string =>
  blocks
    .flatMap((block) =>
      block.type === 'text' ? [block.text] : block.type === 'data' ? [`[${block.name ?? block.mediaType}]`] : [],
    )
    .join(separator)
