import { userId } from '@oxbow/core'

/** Like `userId`, for a string that may be missing or blank. */
export const toId = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : userId(text)
