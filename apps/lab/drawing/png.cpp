// A drawing as PNG, by librsvg, which is loaded when the first one is written. Its headers are optional when ricci is built.
#include <memory>
#include <string>

#include "apps/lab/drawing/svg.h"
#include "core/error.h"

#ifdef RICCI_HAS_RSVG
#include <dlfcn.h>
#include <librsvg/rsvg.h>

namespace ricci::apps {
namespace {

constexpr const char* kLibrary = "librsvg-2.so.2";
constexpr double kPixelsPerUnit = 2;

void* library() {
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail("png: {}", {::dlerror()});
  return handle;
}

// A function of librsvg, or of a library that it uses.
template <class Function> Function* loaded(const char* name) {
  void* const found = ::dlsym(library(), name);
  if (!found) fail("png: {}", {::dlerror()});
  return reinterpret_cast<Function*>(found);
}
#define LOADED(name) loaded<decltype(name)>(#name)

template <class Object, class Free> auto owned(Object* object, Free* free) { return std::unique_ptr<Object, Free*>(object, free); }

}  // namespace

const char* png_fault() { return nullptr; }

std::string rasterized(const std::string& svg) {
  GError* error = nullptr;
  const auto* const bytes = reinterpret_cast<const guint8*>(svg.data());
  const auto drawing = owned(LOADED(rsvg_handle_new_from_data)(bytes, svg.size(), &error), LOADED(g_object_unref));
  if (!drawing) fail("png: {}", {error->message});
  double width = 0, height = 0;
  LOADED(rsvg_handle_get_intrinsic_size_in_pixels)(drawing.get(), &width, &height);
  const RsvgRectangle all{0, 0, width * kPixelsPerUnit, height * kPixelsPerUnit};
  const auto surface =
      owned(LOADED(cairo_image_surface_create)(CAIRO_FORMAT_RGB24, static_cast<int>(all.width), static_cast<int>(all.height)),
          LOADED(cairo_surface_destroy));
  const auto context = owned(LOADED(cairo_create)(surface.get()), LOADED(cairo_destroy));
  if (!LOADED(rsvg_handle_render_document)(drawing.get(), context.get(), &all, &error)) fail("png: {}", {error->message});
  std::string png;
  const auto append = [](void* result, const unsigned char* data, unsigned size) {
    static_cast<std::string*>(result)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  };
  if (const cairo_status_t status = LOADED(cairo_surface_write_to_png_stream)(surface.get(), append, &png); status != CAIRO_STATUS_SUCCESS)
    fail("png: {}", {LOADED(cairo_status_to_string)(status)});
  return png;
}

}  // namespace ricci::apps

#else
namespace ricci::apps {

const char* png_fault() { return "PNG needs librsvg: apps/install_packages.sh librsvg2-dev, then build again"; }
std::string rasterized(const std::string&) { fail("{}", {png_fault()}); }

}  // namespace ricci::apps
#endif
