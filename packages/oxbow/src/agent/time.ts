import { type Tool, ToolError, tool } from '@oxbow/core'

/**
 * Without an argument it uses the turn's attribute `timeZone`, else `userZone`.
 *
 * @param userZone IANA name of the user's time zone, for example Europe/Berlin, as far as the program knows it
 */
export const currentTimeTool = (userZone = 'UTC'): Tool =>
  tool({
    name: 'get_current_time',
    description: 'Returns the current date, weekday and time of the user, or in the time zone that is given.',
    effects: ['read'],
    input: {
      type: 'object',
      properties: {
        timeZone: { type: 'string', description: 'IANA name, for example Asia/Shanghai. Default: that of the user.' },
      },
      additionalProperties: false,
    },
    run({ timeZone }, { attributes }) {
      return describeTime(new Date(), String(timeZone ?? attributes.timeZone ?? userZone))
    },
  })

/** "CST" is a zone of Chicago, Shanghai and Havana; Node would silently choose one. */
const ABBREVIATION = /^(?!UTC$|GMT$)[A-Z]{2,5}$/i

/** @throws ToolError for an unknown or ambiguous time zone */
export function describeTime(now: Date, zone: string): string {
  try {
    if (ABBREVIATION.test(zone)) throw new RangeError('ambiguous')
    const text = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'long',
      year: 'numeric',
      month: 'long',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    }).format(now)
    return `${text} (${zone})`
  } catch (cause) {
    throw new ToolError(
      `Unknown or ambiguous time zone: ${JSON.stringify(zone)}. Use an IANA name such as Asia/Shanghai, or UTC.`,
      { cause },
    )
  }
}
