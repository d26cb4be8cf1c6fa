// Answers each structure with `[structure, places]`.

import { placesOf } from "./layout";

self.onmessage = ({ data }: MessageEvent<string>) => {
  self.postMessage([data, placesOf(data)]);
};
