// Runs what may fail without harm, and reports the beginning and the end of an outage.
import { OxbowError } from '@oxbow/core'

export type Attempt = <T>(run: () => Promise<T>) => Promise<{ readonly ok: boolean; readonly value: T | undefined }>

/** Failures of a back end that is closed are the caller's and are passed on. */
export function attempts(name: string): Attempt {
  let away = false
  return async (run) => {
    try {
      const value = await run()
      if (away) warn(`${name} is back.`)
      away = false
      return { ok: true, value }
    } catch (error) {
      if (error instanceof OxbowError && (error.code === 'backend_closed' || error.code.startsWith('invalid_')))
        throw error
      if (!away) warn(`${name} is away; everything goes on without it, slower. ${(error as Error).message}`)
      away = true
      return { ok: false, value: undefined }
    }
  }
}

const warn = (message: string): void =>
  process.emitWarning(message, { type: 'OxbowWarning', code: 'OXBOW_HOT_STORE_AWAY' })
