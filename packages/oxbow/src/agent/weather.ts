// Current weather from Open-Meteo, which needs no key (its free tier is for non-commercial use).
import { type Tool, ToolError, tool } from '@oxbow/core'

export interface WeatherOptions {
  /** The URL for looking up places. Default: Open-Meteo's. */
  readonly geocodingUrl?: string | undefined
  readonly forecastUrl?: string | undefined
}

const GEOCODING = 'https://geocoding-api.open-meteo.com/v1/search'
const FORECAST = 'https://api.open-meteo.com/v1/forecast'

/** Weather codes of the World Meteorological Organization, as Open-Meteo documents them. */
const CONDITIONS: Record<number, string> = {
  0: 'clear sky',
  1: 'mainly clear',
  2: 'partly cloudy',
  3: 'overcast',
  45: 'fog',
  48: 'depositing rime fog',
  51: 'light drizzle',
  53: 'drizzle',
  55: 'dense drizzle',
  56: 'light freezing drizzle',
  57: 'dense freezing drizzle',
  61: 'slight rain',
  63: 'rain',
  65: 'heavy rain',
  66: 'light freezing rain',
  67: 'heavy freezing rain',
  71: 'slight snow fall',
  73: 'snow fall',
  75: 'heavy snow fall',
  77: 'snow grains',
  80: 'slight rain showers',
  81: 'rain showers',
  82: 'violent rain showers',
  85: 'slight snow showers',
  86: 'heavy snow showers',
  95: 'thunderstorm',
  96: 'thunderstorm with slight hail',
  99: 'thunderstorm with heavy hail',
}

interface Place {
  name: string
  country?: string
  latitude: number
  longitude: number
}

interface Forecast {
  current?: { temperature_2m?: number; relative_humidity_2m?: number; weather_code?: number; wind_speed_10m?: number }
}

export function weatherTool({ geocodingUrl = GEOCODING, forecastUrl = FORECAST }: WeatherOptions = {}): Tool {
  return tool({
    name: 'get_weather',
    description: 'Tells the current weather of a city: conditions, temperature, humidity and wind.',
    effects: ['read'],
    timeoutMs: 10_000,
    input: {
      type: 'object',
      properties: { city: { type: 'string', description: 'The name of the city, in any language.', minLength: 1 } },
      required: ['city'],
      additionalProperties: false,
    },
    async run({ city }, { signal }) {
      const name = String(city).trim()
      const places = await get<{ results?: Place[] }>(
        geocodingUrl,
        { name, count: '1', language: 'en', format: 'json' },
        signal,
      )
      const place = places.results?.[0]
      if (place === undefined) return `No place named ${JSON.stringify(name)} was found.`
      const { current } = await get<Forecast>(
        forecastUrl,
        {
          latitude: String(place.latitude),
          longitude: String(place.longitude),
          current: 'temperature_2m,relative_humidity_2m,weather_code,wind_speed_10m',
        },
        signal,
      )
      if (current === undefined) throw new ToolError('the weather service gave no current weather')
      const facts = [
        CONDITIONS[current.weather_code ?? -1],
        current.temperature_2m !== undefined && `${current.temperature_2m} °C`,
        current.relative_humidity_2m !== undefined && `humidity ${current.relative_humidity_2m} %`,
        current.wind_speed_10m !== undefined && `wind ${current.wind_speed_10m} km/h`,
      ].filter(Boolean)
      return `${place.name}${place.country === undefined ? '' : `, ${place.country}`}: ${facts.join(', ')}.`
    },
  })
}

async function get<T>(url: string, query: Record<string, string>, signal: AbortSignal): Promise<T> {
  let response: Response
  try {
    response = await fetch(`${url}?${new URLSearchParams(query)}`, { signal })
  } catch (cause) {
    if (signal.aborted) throw cause
    throw new ToolError('the weather service cannot be reached from here', { cause })
  }
  if (!response.ok) throw new ToolError(`the weather service answered ${response.status}`)
  return (await response.json()) as T
}
