import { join } from 'node:path'
import { sqlite } from './index.ts'

export const open = async (directory: string) => sqlite({ path: join(directory, 'oxbow.db') })
