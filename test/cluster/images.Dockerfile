# Other versions of the image for updates.
ARG IMAGE
FROM ${IMAGE} AS next
ENV IMAGEMILL_TEST=next

# Its tool does not work, so an instance ends with exit status 2.
FROM ${IMAGE} AS broken
ENV MAGICK_BIN=/bin/false
